"""Standard output for the result alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STDOUT, STDERR = 1, 2


@contextmanager
def stdout_for_result() -> Iterator[Callable[[str], None]]:
    """Send everything that this process and its children write to standard output to standard error.

    That holds for the rest of the process, because threads of the engine may speak after the body.

    Yields:
        a function that writes one line to the real standard output.
    """
    sys.stdout.flush()
    real = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    try:
        yield lambda line: _write_line(real, line)
    finally:
        sys.stdout.flush()
        os.close(real)


def _write_line(descriptor: int, line: str) -> None:
    with os.fdopen(os.dup(descriptor), "w", encoding="utf-8") as stream:
        print(line, file=stream)


def undecorate() -> None:
    """Take the prefix off this process's streams that a worker in this process has put there."""
    for stream in (sys.stdout, sys.stderr):
        vars(stream).pop("write", None)


def say(line: str) -> None:
    """Tell the user something, on standard error."""
    print(line, file=sys.stderr, flush=True)
