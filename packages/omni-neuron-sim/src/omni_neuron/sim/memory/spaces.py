"""The memories that a kernel can name."""

from enum import StrEnum
from functools import cached_property


class MemorySpace(StrEnum):
    """Where a tensor lives. On chip the first dimension is the partition."""

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"

    @cached_property
    def on_chip(self) -> bool:
        return self in (MemorySpace.sbuf, MemorySpace.psum)
