"""Which box of which checkpoint tensor goes to which box of a parameter.

A box is one slice with explicit bounds per dimension. A placement is plain data, so that what a rank reads
can be ordered by file, split into blocks and proved complete before the first byte moves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch

from omni_neuron.distributed.errors import ShardingError

Shape = tuple[int, ...]
Box = tuple[slice, ...]


@dataclass(frozen=True)
class Piece:
    """The entries ``read`` of checkpoint tensor number ``source``, which fill the entries ``write``."""

    source: int
    read: Box
    write: Box


@dataclass(frozen=True)
class Placement:
    """How a parameter is filled.

    Args:
        shape: the parameter's.
        pieces: what is read.
        padding: boxes of zeros.
        transposed: the boxes that are written are those of the parameter's transpose (two dimensions).
        divisor: values are divided by it in float32; None leaves them as they are.
    """

    shape: Shape
    pieces: tuple[Piece, ...]
    padding: tuple[Box, ...] = ()
    transposed: bool = False
    divisor: int | None = None

    def dtype(self, stored: torch.dtype) -> torch.dtype:
        """The dtype of the value when nothing casts it: the checkpoint's, unless there is arithmetic."""
        return stored if self.divisor is None else torch.float32

    def view(self, parameter: torch.Tensor) -> torch.Tensor:
        """The parameter as the written boxes address it."""
        return parameter.t() if self.transposed else parameter

    def zero_padding(self, parameter: torch.Tensor) -> None:
        """Write the zeros."""
        view = self.view(parameter)
        for box in self.padding:
            view[box].zero_()

    def put(self, parameter: torch.Tensor, write: Box, part: torch.Tensor) -> None:
        """Write one part, cast to the parameter's dtype."""
        if self.divisor is not None:
            part = part.to(torch.float32) / self.divisor
        self.view(parameter)[write].copy_(part)

    def require_complete(self, name: str) -> None:
        """Refuse to leave an entry of the parameter out or to write one twice.

        Raises:
            ShardingError: names the parameter.
        """
        boxes = [box for box in (*(piece.write for piece in self.pieces), *self.padding) if volume(box)]
        twice = any(_overlap(one, other) for one, other in combinations(boxes, 2))
        filled, size = sum(map(volume, boxes)), math.prod(self.shape)
        if twice or filled != size:
            raise ShardingError(
                f"The loader of {name} writes {filled} entries{' with overlaps' if twice else ''}, "
                f"which must be each of the parameter's {size} once: attach the loader that fits it."
            )


def whole_box(shape: Sequence[int]) -> Box:
    """The box of every entry."""
    return tuple(slice(0, size) for size in shape)


def extents(box: Box) -> Shape:
    """The shape of what is in a box."""
    return tuple(part.stop - part.start for part in box)


def volume(box: Box) -> int:
    """How many entries are in a box."""
    return math.prod(extents(box))


def along(box: Box, dim: int, start: int, length: int) -> Box:
    """The box with other bounds along one dimension."""
    return (*box[:dim], slice(start, start + length), *box[dim + 1 :])


def shifted(part: Box, origin: Box, target: Box) -> Box:
    """Where ``part`` of the box ``origin`` lies when ``origin`` is moved to ``target``."""
    offsets = (there.start - here.start for here, there in zip(origin, target, strict=True))
    return tuple(slice(p.start + by, p.stop + by) for p, by in zip(part, offsets, strict=True))


def _overlap(one: Box, other: Box) -> bool:
    return all(a.start < b.stop and b.start < a.stop for a, b in zip(one, other, strict=True))
