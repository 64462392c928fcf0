"""The loaders' common form: runs of entries along one dimension of whole checkpoint tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from omni_neuron.distributed.errors import ShardingError, shard_size
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.loading.placement import Box, Piece, Placement, Shape, along, whole_box


class WeightLoader(ABC):
    """Builds one parameter from its checkpoint tensors."""

    @abstractmethod
    def expected_shapes(self, param_shape: Sequence[int]) -> list[Shape]:
        """Whole shapes of the checkpoint tensors behind a parameter of ``param_shape``, in order."""

    @abstractmethod
    def placement(self, shapes: Sequence[Shape]) -> Placement:
        """What this rank keeps of whole checkpoint tensors of these shapes, and where.

        Raises:
            ShardingError: the shapes cannot be cut so.
        """

    def __call__(self, wholes: Sequence[torch.Tensor]) -> torch.Tensor:
        """This rank's value of whole tensors in memory, in their dtype unless the loader computes."""
        placement = self.placement([tuple(whole.shape) for whole in wholes])
        parts = [wholes[piece.source][piece.read] for piece in placement.pieces]
        value = torch.zeros(placement.shape, dtype=placement.dtype(parts[0].dtype))
        for piece, part in zip(placement.pieces, parts, strict=True):
            placement.put(value, piece.write, part)
        return value


@dataclass(frozen=True)
class Run:
    """Neighbouring entries along the cut dimension: of tensor number ``source``, zeros where that is None."""

    source: int | None
    start: int
    length: int


@dataclass(frozen=True)
class Cut(WeightLoader):
    """Runs of entries along ``dim``, one after the other; the other dimensions are whole.

    ``sizes`` are the whole sizes along ``dim`` of the checkpoint tensors.
    """

    dim: int
    sizes: tuple[int, ...]
    runs: tuple[Run, ...]

    def expected_shapes(self, param_shape: Sequence[int]) -> list[Shape]:
        return [resized(param_shape, self.dim, size) for size in self.sizes]

    def placement(self, shapes: Sequence[Shape]) -> Placement:
        dim = self.dim % len(shapes[0])
        found = tuple(shape[dim] for shape in shapes)
        if found != self.sizes:
            raise ShardingError(f"checkpoint dimension {dim}={found} must be {self.sizes}.")
        target = whole_box(resized(shapes[0], dim, sum(run.length for run in self.runs)))
        pieces: list[Piece] = []
        padding: list[Box] = []
        at = 0
        for run in self.runs:
            write = along(target, dim, at, run.length)
            if run.source is None:
                padding.append(write)
            else:
                read = along(whole_box(shapes[run.source]), dim, run.start, run.length)
                pieces.append(Piece(run.source, read, write))
            at += run.length
        return Placement(resized(shapes[0], dim, at), tuple(pieces), tuple(padding))


@dataclass(frozen=True)
class EqualCut(WeightLoader):
    """Equal shards of ``parts`` tensors, whose sizes the shapes tell."""

    dim: int
    group: ParallelGroup
    parts: int

    def expected_shapes(self, param_shape: Sequence[int]) -> list[Shape]:
        total = param_shape[self.dim] * self.group.size
        size = shard_size("fused size", total, self.parts, degree="parts")
        return [resized(param_shape, self.dim, size)] * self.parts

    def placement(self, shapes: Sequence[Shape]) -> Placement:
        dim = self.dim % len(shapes[0])
        sizes = [shape[dim] for shape in shapes]
        field = f"checkpoint dimension {dim}"
        runs = [equal_run(size, self.group, source, field=field) for source, size in enumerate(sizes)]
        return Cut(dim, tuple(sizes), tuple(runs)).placement(shapes)


def resized(shape: Sequence[int], dim: int, size: int) -> Shape:
    dim = dim % len(shape)
    return (*shape[:dim], size, *shape[dim + 1 :])


def equal_run(size: int, group: ParallelGroup, source: int, start: int = 0, field: str = "fused size") -> Run:
    share = shard_size(field, size, group.size, degree=group.name)
    return Run(source, start + group.rank_in_group * share, share)
