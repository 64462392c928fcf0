"""How a parameter of one rank is cut from whole checkpoint tensors.

A loader hangs on its parameter. It says which whole shapes it expects, and reads only this rank's
slices, so that a rank never materialises a tensor of which it owns a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
from torch import nn

from omni_neuron.distributed.errors import shard_size
from omni_neuron.distributed.groups import ParallelGroup

_ATTRIBUTE = "weight_loader"


class TensorSlice(Protocol):
    """A tensor in a file, read by indexing; what ``safetensors``' ``get_slice`` returns."""

    def get_shape(self) -> list[int]: ...

    def get_dtype(self) -> str: ...

    def __getitem__(self, index: Any) -> torch.Tensor: ...


class WeightLoader(Protocol):
    """Builds one parameter from its checkpoint tensors."""

    def __call__(self, slices: Sequence[TensorSlice]) -> torch.Tensor:
        """This rank's value, in the checkpoint's dtype unless the loader computes."""
        ...

    def expected_shapes(self, param_shape: Sequence[int]) -> list[tuple[int, ...]]:
        """Whole shapes of the checkpoint tensors behind a parameter of ``param_shape``, in order."""
        ...


def set_weight_loader(param: nn.Parameter, loader: WeightLoader) -> None:
    """Attach a loader to a parameter."""
    setattr(param, _ATTRIBUTE, loader)


def get_weight_loader(param: nn.Parameter) -> WeightLoader:
    """The parameter's loader; :func:`replicated` where none was attached."""
    return cast(WeightLoader, getattr(param, _ATTRIBUTE, None) or replicated())


def replicated() -> WeightLoader:
    """Every rank holds the whole tensor."""
    return _Replicated()


def sharded(dim: int, group: ParallelGroup) -> WeightLoader:
    """Each rank holds an equal part along ``dim``, in list order."""
    return _Sharded(dim, group)


def head_sharded(dim: int, group: ParallelGroup, num_heads: int | None = None) -> WeightLoader:
    """Each rank holds whole attention heads along ``dim``: ``num_heads * head_dim`` (or one) entries.

    ``num_heads``, where given, must be divisible by the group's size.
    """
    if num_heads is not None:
        shard_size("num_heads", num_heads, group.size, degree=group.name)
    return _Sharded(dim, group)


def fused_sharded(dim: int, group: ParallelGroup, sizes: Sequence[int] | None = None) -> WeightLoader:
    """Several checkpoint tensors, each sharded along ``dim``, joined along ``dim`` in key order.

    ``sizes`` are the whole sizes along ``dim``, one per checkpoint tensor; None means three equal ones:
    query, key, value.
    """
    return _FusedSharded(dim, group, None if sizes is None else tuple(sizes))


def scaled_bias(group: ParallelGroup) -> WeightLoader:
    """Every rank holds ``bias / group.size``, so that a sum over the ranks adds the bias once."""
    return _ScaledBias(group)


def vocab_sharded(group: ParallelGroup, num_embeddings: int) -> WeightLoader:
    """Each rank holds an equal part of the rows, the last ones padded with zero rows."""
    return _VocabSharded(group, num_embeddings)


@dataclass(frozen=True)
class _Replicated:
    def __call__(self, slices: Sequence[TensorSlice]) -> torch.Tensor:
        (whole,) = slices
        return whole[...]

    def expected_shapes(self, param_shape: Sequence[int]) -> list[tuple[int, ...]]:
        return [tuple(param_shape)]


@dataclass(frozen=True)
class _Sharded:
    dim: int
    group: ParallelGroup

    def __call__(self, slices: Sequence[TensorSlice]) -> torch.Tensor:
        (whole,) = slices
        return _read_shard(whole, self.dim, self.group)

    def expected_shapes(self, param_shape: Sequence[int]) -> list[tuple[int, ...]]:
        return [_resized(param_shape, self.dim, param_shape[self.dim] * self.group.size)]


@dataclass(frozen=True)
class _FusedSharded:
    dim: int
    group: ParallelGroup
    sizes: tuple[int, ...] | None

    def __call__(self, slices: Sequence[TensorSlice]) -> torch.Tensor:
        return torch.cat([_read_shard(whole, self.dim, self.group) for whole in slices], dim=self.dim)

    def expected_shapes(self, param_shape: Sequence[int]) -> list[tuple[int, ...]]:
        total = param_shape[self.dim] * self.group.size
        sizes = self.sizes or (shard_size("fused size", total, 3, degree="parts"),) * 3
        return [_resized(param_shape, self.dim, size) for size in sizes]


@dataclass(frozen=True)
class _ScaledBias:
    group: ParallelGroup

    def __call__(self, slices: Sequence[TensorSlice]) -> torch.Tensor:
        (whole,) = slices
        return whole[...].to(torch.float32) / self.group.size

    def expected_shapes(self, param_shape: Sequence[int]) -> list[tuple[int, ...]]:
        return [tuple(param_shape)]


@dataclass(frozen=True)
class _VocabSharded:
    group: ParallelGroup
    num_embeddings: int

    def __call__(self, slices: Sequence[TensorSlice]) -> torch.Tensor:
        (whole,) = slices
        rows = -(-self.num_embeddings // self.group.size)
        start = min(self.group.rank_in_group * rows, self.num_embeddings)
        stop = min(start + rows, self.num_embeddings)
        mine = whole[start:stop]
        if stop - start == rows:
            return mine
        return torch.cat([mine, mine.new_zeros(rows - (stop - start), *mine.shape[1:])])

    def expected_shapes(self, param_shape: Sequence[int]) -> list[tuple[int, ...]]:
        return [_resized(param_shape, 0, self.num_embeddings)]


def _resized(shape: Sequence[int], dim: int, size: int) -> tuple[int, ...]:
    dim = dim % len(shape)
    return (*shape[:dim], size, *shape[dim + 1 :])


def _read_shard(whole: TensorSlice, dim: int, group: ParallelGroup) -> torch.Tensor:
    shape = whole.get_shape()
    dim = dim % len(shape)
    size = shard_size(f"checkpoint dimension {dim}", shape[dim], group.size, degree=group.name)
    start = group.rank_in_group * size
    return whole[(slice(None),) * dim + (slice(start, start + size),)]
