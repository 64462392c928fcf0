"""The first stage: bytes on their way from the disk into the page cache before they are read.

The ranks of a host share the page cache, so each asks for its part of the files. Nobody waits for anybody:
what another rank has not brought in yet, the read itself brings in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch.distributed as dist

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.loading.read_plan import ParameterPlan

# The kernel cuts one request down to the device's read-ahead, which is seldom less than this.
REQUEST_BYTES = 128 << 10


@dataclass(frozen=True)
class Prefetch:
    """Which files a rank asks for, and how far ahead of its reading.

    Args:
        rank: this rank's number among the ranks of its host that load the same files.
        ranks: how many those are; each asks for the files with ``index % ranks == rank``, and a single one
            only for the bytes that it keeps.
        ahead_bytes: bytes of checkpoint per rank that may be asked for before they are read.
    """

    rank: int = 0
    ranks: int = 1
    ahead_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.ranks:
            raise LayoutError(f"Prefetch rank={self.rank} must lie in 0..{self.ranks - 1}.")
        if self.ahead_bytes < 0:
            raise LayoutError(f"Prefetch ahead_bytes={self.ahead_bytes} must be at least 0.")

    @classmethod
    def of_this_process(cls) -> Prefetch:
        """All ranks of the default process group on one host; alone where there is none."""
        if not dist.is_initialized():
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())


@dataclass(frozen=True)
class FileRange:
    """Bytes of a file, and how many bytes of whole tensors come before them in the order of loading."""

    file: Path
    offset: int
    size: int
    position: int


def ranges_to_prefetch(plans: Sequence[ParameterPlan], prefetch: Prefetch) -> list[FileRange]:
    """What this rank asks for, in the order of loading."""
    blocks = [block for plan in plans for block in plan.blocks]
    if prefetch.ranks == 1:
        return [FileRange(block.tensor.file, block.offset, block.size, block.position) for block in blocks]
    files = sorted({block.tensor.file for block in blocks})
    mine = set(files[prefetch.rank :: prefetch.ranks])
    starts = {block.tensor: block.position - (block.offset - block.tensor.offset) for block in blocks}
    return [
        FileRange(tensor.file, tensor.offset, tensor.size, position)
        for tensor, position in starts.items()
        if tensor.file in mine
    ]


def requests(ranges: Sequence[FileRange]) -> Iterator[FileRange]:
    """The ranges cut to what the kernel honours at once."""
    for whole in ranges:
        for start in range(0, whole.size, REQUEST_BYTES):
            size = min(REQUEST_BYTES, whole.size - start)
            yield FileRange(whole.file, whole.offset + start, size, whole.position + start)


def will_need(descriptor: int, part: FileRange) -> None:
    """Ask the kernel for a part of an open file; it is advice, and a filesystem may refuse it."""
    try:
        os.posix_fadvise(descriptor, part.offset, part.size, os.POSIX_FADV_WILLNEED)
    except OSError:
        return
