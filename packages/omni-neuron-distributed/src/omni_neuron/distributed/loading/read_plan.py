"""What a rank reads, in blocks, in the order of the files.

A block is a box of one tensor whose bytes, from its first entry to its last, fit a staging buffer. Rows that
lie close together are read with what is between them: the page cache brings that in anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from omni_neuron.distributed.loading.placement import (
    Box,
    Placement,
    Shape,
    along,
    extents,
    shifted,
    volume,
)
from omni_neuron.distributed.loading.stored_tensor import StoredTensor

BLOCK_BYTES = 4 << 20
GAP_BYTES = 64 << 10


@dataclass(frozen=True)
class Block:
    """``read`` of a tensor, to be written to ``write`` of its parameter.

    ``offset`` and ``size`` say which bytes of the file hold it; ``position`` is how many bytes of whole
    tensors come before them in the order of loading.
    """

    tensor: StoredTensor
    read: Box
    write: Box
    offset: int
    size: int
    position: int

    @property
    def contiguous(self) -> bool:
        """Whether the file's bytes are the block's entries and no others."""
        return self.size == volume(self.read) * self.tensor.dtype.itemsize

    @property
    def useful_bytes(self) -> int:
        """Bytes of the entries that are kept."""
        return volume(self.read) * self.tensor.dtype.itemsize

    def entries(self, buffer: torch.Tensor) -> torch.Tensor:
        """The block's entries as a view of the bytes that were read into ``buffer`` [size]."""
        values = buffer[: self.size].view(self.tensor.dtype)
        return values.as_strided(extents(self.read), strides(self.tensor.shape))


@dataclass(frozen=True)
class ParameterPlan:
    """One parameter's value: its blocks follow each other, so that one parameter at a time is incomplete."""

    name: str
    placement: Placement
    dtype: torch.dtype
    blocks: tuple[Block, ...]


def plan_reads(
    matched: Mapping[str, Sequence[StoredTensor]], placements: Mapping[str, Placement]
) -> list[ParameterPlan]:
    """The parameters in the order of their first tensor in the files."""

    def place(tensor: StoredTensor) -> tuple[str, int]:
        return str(tensor.file), tensor.offset

    plans = []
    position = 0
    for name, tensors in sorted(matched.items(), key=lambda item: min(map(place, item[1]))):
        placement = placements[name]
        dtype = tensors[0].dtype
        for tensor in tensors[1:]:
            dtype = torch.promote_types(dtype, tensor.dtype)
        blocks: list[Block] = []
        for tensor in sorted(tensors, key=place):
            blocks += sorted(_blocks(tensor, placement, tensors.index(tensor), position), key=_offset)
            position += tensor.size
        plans.append(ParameterPlan(name, placement, placement.dtype(dtype), tuple(blocks)))
    return plans


def strides(shape: Shape) -> Shape:
    """Entries from one index to the next in each dimension of a row-major tensor."""
    return tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))


def first_entry(box: Box, steps: Shape) -> int:
    """Index of a box's first entry in the flat tensor."""
    return sum(int(part.start) * step for part, step in zip(box, steps, strict=True))


def _offset(block: Block) -> int:
    return block.offset


def _blocks(tensor: StoredTensor, placement: Placement, source: int, position: int) -> Iterator[Block]:
    steps = strides(tensor.shape)
    itemsize = tensor.dtype.itemsize
    for piece in placement.pieces:
        if piece.source != source or not volume(piece.read):
            continue
        for box in split(piece.read, steps, BLOCK_BYTES // itemsize, GAP_BYTES // itemsize):
            start = itemsize * first_entry(box, steps)
            write = shifted(box, piece.read, piece.write)
            size = spans(box, steps)[0] * itemsize
            yield Block(tensor, box, write, tensor.offset + start, size, position + start)


def split(box: Box, steps: Shape, limit: int, gap: int) -> Iterator[Box]:
    """Boxes that span at most ``limit`` entries of the file each and leave out gaps above ``gap``."""
    sizes, tails = extents(box), spans(box, steps)
    far = any(n > 1 and step - row > gap for n, step, row in zip(sizes, steps, tails[1:], strict=True))
    if volume(box) == 1 or (tails[0] <= limit and not far):
        yield box
        return
    dim = next(dim for dim, size in enumerate(sizes) if size > 1)
    count = 1 if far or tails[dim + 1] > limit else (limit - tails[dim + 1]) // steps[dim] + 1
    for start in range(0, sizes[dim], count):
        rows = along(box, dim, box[dim].start + start, min(count, sizes[dim] - start))
        yield from split(rows, steps, limit, gap)


def spans(box: Box, steps: Shape) -> list[int]:
    """For each dimension, entries of the file from the first to the last of that and the inner dimensions."""
    tails = [1]
    for size, step in zip(reversed(extents(box)), reversed(steps), strict=True):
        tails.insert(0, tails[0] + (size - 1) * step)
    return tails
