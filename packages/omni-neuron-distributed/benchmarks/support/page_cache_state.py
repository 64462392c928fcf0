"""The page cache of a file: emptied, and asked how full it is."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path


def drop(file: Path) -> None:
    """Let the kernel forget the file's pages: written back first, since dirty pages stay."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def resident_share(file: Path) -> float:
    """Share of the file's pages that are in memory, by mincore(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(file, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        pages = -(-len(mapped) // mmap.PAGESIZE)
        state = (ctypes.c_ubyte * pages)()
        first = ctypes.c_char.from_buffer(mapped)
        failed = libc.mincore(
            ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(mapped)), ctypes.byref(state)
        )
        del first
        if failed:
            raise OSError(ctypes.get_errno(), "mincore")
        return sum(page & 1 for page in bytes(state)) / pages
