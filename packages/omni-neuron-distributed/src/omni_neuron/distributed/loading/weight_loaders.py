"""How a parameter of one rank is cut from whole checkpoint tensors.

A loader hangs on its parameter. It says which whole shapes it expects and which boxes of them this rank
keeps, so that a rank never materialises a tensor of which it owns a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from torch import nn

from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.loading.cut import (
    Cut,
    EqualCut,
    Run,
    WeightLoader,
    equal_run,
    resized,
)
from omni_neuron.distributed.loading.head_loaders import fused_head_sharded, head_sharded
from omni_neuron.distributed.loading.placement import Piece, Placement, Shape, along, whole_box

__all__ = [
    "WeightLoader",
    "fused_head_sharded",
    "fused_sharded",
    "get_weight_loader",
    "head_sharded",
    "packed_sharded",
    "padded",
    "padded_sharded",
    "replicated",
    "scaled_bias",
    "set_weight_loader",
    "sharded",
    "transposed",
    "vocab_sharded",
]

_ATTRIBUTE = "weight_loader"


def set_weight_loader(param: nn.Parameter, loader: WeightLoader) -> None:
    """Attach a loader to a parameter."""
    setattr(param, _ATTRIBUTE, loader)


def get_weight_loader(param: nn.Parameter) -> WeightLoader:
    """The parameter's loader; :func:`replicated` where none was attached."""
    return cast(WeightLoader, getattr(param, _ATTRIBUTE, None) or replicated())


def replicated() -> WeightLoader:
    """Every rank holds the whole tensor."""
    return _Replicated()


def scaled_bias(group: ParallelGroup) -> WeightLoader:
    """Every rank holds ``bias / group.size``, so that a sum over the ranks adds the bias once."""
    return _Replicated(divisor=group.size)


def sharded(dim: int, group: ParallelGroup) -> WeightLoader:
    """Each rank holds an equal part along ``dim``, in list order."""
    return EqualCut(dim, group, parts=1)


def fused_sharded(dim: int, group: ParallelGroup, sizes: Sequence[int] | None = None) -> WeightLoader:
    """Several checkpoint tensors, each sharded along ``dim``, joined along ``dim`` in key order.

    ``sizes`` are the whole sizes along ``dim``, one per checkpoint tensor; None means three equal ones:
    query, key, value.
    """
    if sizes is None:
        return EqualCut(dim, group, parts=3)
    runs = [equal_run(size, group, source) for source, size in enumerate(sizes)]
    return Cut(dim, tuple(sizes), tuple(runs))


def packed_sharded(dim: int, group: ParallelGroup, sizes: Sequence[int]) -> WeightLoader:
    """One checkpoint tensor of parts that follow each other along ``dim``; each rank holds its shard of each.

    ``sizes`` are the parts' whole sizes: query, key and value that a checkpoint keeps in one tensor.
    """
    starts = [sum(sizes[:part]) for part in range(len(sizes))]
    runs = [equal_run(size, group, 0, start) for size, start in zip(sizes, starts, strict=True)]
    return Cut(dim, (sum(sizes),), tuple(runs))


def padded_sharded(dim: int, group: ParallelGroup, size: int) -> WeightLoader:
    """Each rank holds ``ceil(size / group.size)`` entries along ``dim``, zeros after the last of ``size``."""
    share = -(-size // group.size)
    start = min(group.rank_in_group * share, size)
    mine = min(share, size - start)
    return Cut(dim, (size,), (Run(0, start, mine), Run(None, 0, share - mine)))


def vocab_sharded(group: ParallelGroup, num_embeddings: int) -> WeightLoader:
    """Each rank holds an equal part of the rows, the last ones padded with zero rows."""
    return padded_sharded(0, group, num_embeddings)


def transposed(loader: WeightLoader) -> WeightLoader:
    """The parameter is the transpose of what ``loader`` gives: stored ``[in, out]`` for a plain product."""
    return _Transposed(loader)


def padded(loader: WeightLoader, dim: int, size: int, padded_size: int) -> WeightLoader:
    """What ``loader`` gives, ``size`` entries along the parameter's ``dim``, and zeros up to ``padded_size``.

    Raises:
        ShardingError: ``padded_size`` is below ``size``.
    """
    if padded_size < size:
        raise ShardingError(f"padded_size={padded_size} must be at least size={size}.")
    return _Padded(loader, dim, size, padded_size)


@dataclass(frozen=True)
class _Replicated(WeightLoader):
    divisor: int | None = None

    def expected_shapes(self, param_shape: Sequence[int]) -> list[Shape]:
        return [tuple(param_shape)]

    def placement(self, shapes: Sequence[Shape]) -> Placement:
        (shape,) = shapes
        box = whole_box(shape)
        return Placement(shape, (Piece(0, box, box),), divisor=self.divisor)


@dataclass(frozen=True)
class _Transposed(WeightLoader):
    loader: WeightLoader

    def expected_shapes(self, param_shape: Sequence[int]) -> list[Shape]:
        return self.loader.expected_shapes(param_shape[::-1])

    def placement(self, shapes: Sequence[Shape]) -> Placement:
        inner = self.loader.placement(shapes)
        if len(inner.shape) > 2:
            raise ShardingError(
                f"A transposed parameter of shape {inner.shape[::-1]} must have two dimensions."
            )
        return replace(inner, shape=inner.shape[::-1], transposed=not inner.transposed)


@dataclass(frozen=True)
class _Padded(WeightLoader):
    loader: WeightLoader
    dim: int
    size: int
    padded_size: int

    def expected_shapes(self, param_shape: Sequence[int]) -> list[Shape]:
        return self.loader.expected_shapes(resized(param_shape, self.dim, self.size))

    def placement(self, shapes: Sequence[Shape]) -> Placement:
        inner = self.loader.placement(shapes)
        dim = self.dim % len(inner.shape)
        if inner.shape[dim] != self.size:
            raise ShardingError(
                f"dimension {dim}={inner.shape[dim]} must be size={self.size} before padding."
            )
        zeros = along(whole_box(inner.shape), dim, self.size, self.padded_size - self.size)
        zeros = zeros[::-1] if inner.transposed else zeros
        shape = resized(inner.shape, dim, self.padded_size)
        return replace(inner, shape=shape, padding=(*inner.padding, zeros))
