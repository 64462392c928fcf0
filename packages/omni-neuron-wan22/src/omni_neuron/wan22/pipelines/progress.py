"""Progress of the denoising loop on standard error: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import os
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

STDERR = 2


class DenoiseProgress:
    """Counts steps: `with DenoiseProgress(total) as bar: ...; bar.update()`.

    It writes to the file descriptor, because a worker's `sys.stderr` prefixes every write.
    """

    def __init__(self, total: int, enabled: bool = True) -> None:
        self._total = total
        self._enabled = enabled
        self._done = 0
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        if self._enabled and os.isatty(STDERR):
            stream = io.TextIOWrapper(io.FileIO(STDERR, "w", closefd=False), write_through=True)
            self._bar = Progress(
                TextColumn("denoise"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(file=stream, force_terminal=True),
            )
            self._task = self._bar.add_task("denoise", total=self._total)
            self._bar.start()
        return self

    def update(self, steps: int = 1) -> None:
        """Count `steps` more."""
        self._done += steps
        if self._bar is not None:
            self._bar.advance(self._task, steps)
        elif self._enabled:
            os.write(STDERR, f"denoise {self._done}/{self._total}\n".encode())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
