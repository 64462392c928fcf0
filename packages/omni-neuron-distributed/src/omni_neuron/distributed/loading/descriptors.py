"""Files that one thread has open for reading."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from omni_neuron.distributed.errors import CheckpointError


class Descriptors:
    """Descriptors by file, opened at first use and closed at the end of the ``with`` block."""

    def __enter__(self) -> Descriptors:
        self._stack = ExitStack()
        self._open: dict[Path, int] = {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def __getitem__(self, file: Path) -> int:
        """The open file; CheckpointError when it cannot be opened."""
        if file not in self._open:
            try:
                # Without waiting, also where a pipe has taken the file's place; files of a disk are as ever.
                descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            except OSError as error:
                raise CheckpointError(
                    f"Checkpoint file {file} cannot be opened ({error.strerror}): "
                    "check that it exists and may be read."
                ) from error
            self._stack.callback(os.close, descriptor)
            self._open[file] = descriptor
        return self._open[file]
