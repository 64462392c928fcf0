"""Progress as plain lines, for logs and terminals alike."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class PlainProgress:
    """Writes how much has been loaded, every so many seconds and at the end of what took that long.

    Pass one as the ``progress`` of ``load_sharded``.

    Args:
        what: begins every line.
        stream: where lines go; standard error when None.
        every_s: seconds between lines.
    """

    def __init__(self, what: str, stream: TextIO | None = None, every_s: float = 5.0) -> None:
        self._what = what
        self._stream = stream
        self._every_s = every_s
        self._start = self._last = time.monotonic()
        self._spoke = every_s == 0

    def __call__(self, done_bytes: int, total_bytes: int) -> None:
        now = time.monotonic()
        due = now - self._last >= self._every_s
        if not due and not (self._spoke and done_bytes == total_bytes):
            return
        self._last, self._spoke = now, True
        rate = done_bytes / max(now - self._start, 1e-9)
        share = 100 * done_bytes // total_bytes if total_bytes else 100
        print(
            f"{self._what}: {done_bytes / 1e9:.2f} of {total_bytes / 1e9:.2f} GB ({share} %), "
            f"{rate / 1e9:.2f} GB/s",
            file=self._stream or sys.stderr,
            flush=True,
        )
