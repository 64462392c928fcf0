"""Imports without the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def permanent_imports() -> Iterator[None]:
    """Import in the body what stays until the process ends.

    The engine is a million objects that the collector would look at again and again: while they are imported,
    in every collection that follows, and once more when the process ends, seconds of a core in all. So it
    pauses, and then leaves alone whatever exists. Where the process forks, its children share those pages.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
