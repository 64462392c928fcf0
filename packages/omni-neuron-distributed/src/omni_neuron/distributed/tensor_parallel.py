"""Linear layers and embeddings cut over the tensor-parallel group.

Column then row, as in Megatron-LM (Shoeybi et al. 2019, section 3): the column layer gives each rank its
output features without communication, the row layer sums the partial products of the ranks.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from omni_neuron.distributed.collectives import all_reduce
from omni_neuron.distributed.errors import ShardingError, shard_size
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.loading.weight_loaders import (
    fused_sharded,
    replicated,
    set_weight_loader,
    sharded,
    vocab_sharded,
)


class ColumnParallelLinear(nn.Module):
    """``y = x W^T + b`` with this rank's output features: ``[..., in] -> [..., out/tp]``.

    The weight is ``[out/tp, in]``, the bias ``[out/tp]``; values are undefined until they are loaded.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        group: ParallelGroup,
        *,
        bias: bool = True,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.group = group
        local = shard_size("out_features", out_features, group.size, degree=group.name)
        self.weight = nn.Parameter(torch.empty(local, in_features, dtype=dtype, device=device))
        set_weight_loader(self.weight, sharded(0, group))
        self.bias = nn.Parameter(torch.empty(local, dtype=dtype, device=device)) if bias else None
        if self.bias is not None:
            set_weight_loader(self.bias, sharded(0, group))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return _describe(self.in_features, self.out_features, self.group)


class FusedColumnParallelLinear(nn.Module):
    """Several column-parallel layers of one input in one product, such as query, key and value.

    ``[..., in] -> tuple of [..., out_i/tp]``. The weight ``[sum(out)/tp, in]`` holds this rank's shard
    of each part in turn and loads from one checkpoint key per part.
    """

    def __init__(
        self,
        in_features: int,
        out_features: Sequence[int],
        group: ParallelGroup,
        *,
        bias: bool = True,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = tuple(out_features)
        self.group = group
        self.local_features = [
            shard_size(f"out_features[{i}]", out, group.size, degree=group.name)
            for i, out in enumerate(self.out_features)
        ]
        local = sum(self.local_features)
        loader = fused_sharded(0, group, self.out_features)
        self.weight = nn.Parameter(torch.empty(local, in_features, dtype=dtype, device=device))
        set_weight_loader(self.weight, loader)
        self.bias = nn.Parameter(torch.empty(local, dtype=dtype, device=device)) if bias else None
        if self.bias is not None:
            set_weight_loader(self.bias, loader)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.split(functional.linear(x, self.weight, self.bias), self.local_features, dim=-1)

    def extra_repr(self) -> str:
        return _describe(self.in_features, self.out_features, self.group)


class RowParallelLinear(nn.Module):
    """``y = x W^T + b`` from this rank's input features: ``[..., in/tp] -> [..., out]``, equal on all ranks.

    The weight is ``[out, in/tp]``; the whole bias ``[out]`` is added once, after the sum, in float32.
    With ``reduce_dtype`` float32 the partial products stay in float32 until the sum is complete, and the
    result is rounded once to the input's dtype, as on one rank. With bfloat16 each partial product is
    accumulated in float32 and rounded once before the wire.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        group: ParallelGroup,
        *,
        bias: bool = True,
        reduce_dtype: torch.dtype = torch.float32,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        if reduce_dtype not in (torch.float32, torch.bfloat16):
            raise ShardingError(f"reduce_dtype={reduce_dtype} must be torch.float32 or torch.bfloat16.")
        self.in_features = in_features
        self.out_features = out_features
        self.group = group
        self.reduce_dtype = reduce_dtype
        local = shard_size("in_features", in_features, group.size, degree=group.name)
        self.weight = nn.Parameter(torch.empty(out_features, local, dtype=dtype, device=device))
        set_weight_loader(self.weight, sharded(1, group))
        self.bias = nn.Parameter(torch.empty(out_features, dtype=dtype, device=device)) if bias else None
        if self.bias is not None:
            set_weight_loader(self.bias, replicated())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.group.size == 1:
            return functional.linear(x, self.weight, self.bias)
        if self.reduce_dtype == torch.float32:
            partial = functional.linear(x.float(), self.weight.float())
        else:
            partial = functional.linear(x, self.weight).to(self.reduce_dtype)
        total = all_reduce(partial, self.group)
        if self.bias is not None:
            total = total.float() + self.bias.float()
        return total.to(x.dtype)

    def extra_repr(self) -> str:
        return f"{_describe(self.in_features, self.out_features, self.group)}, reduce={self.reduce_dtype}"


class VocabParallelEmbedding(nn.Module):
    """Embedding table cut by vocabulary rows: ids ``[...]`` -> ``[..., embedding_dim]``, on all ranks.

    The vocabulary is padded with zero rows to a multiple of the group's size. One rank contributes each
    row and the others zeros, so the sum over the ranks is exact in every dtype. An id outside the
    vocabulary is an ``IndexError`` on one rank and a zero row on several.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        group: ParallelGroup,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        if num_embeddings < 1:
            raise ShardingError(f"num_embeddings={num_embeddings} must be at least 1.")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.group = group
        self.local_rows = -(-num_embeddings // group.size)
        self.weight = nn.Parameter(torch.empty(self.local_rows, embedding_dim, dtype=dtype, device=device))
        set_weight_loader(self.weight, vocab_sharded(group, num_embeddings))
        # A tensor, so that the graphs of all ranks are the same; never on meta, since no checkpoint fills it.
        home = None if device is None or torch.device(device).type == "meta" else device
        first_row = torch.tensor(group.rank_in_group * self.local_rows, device=home)
        self.register_buffer("first_row", first_row, persistent=False)
        self.first_row: torch.Tensor

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        if self.group.size == 1:
            return functional.embedding(ids, self.weight)
        local_ids = ids - self.first_row
        mine = (local_ids >= 0) & (local_ids < self.local_rows)
        rows = functional.embedding(torch.where(mine, local_ids, 0), self.weight)
        return all_reduce(torch.where(mine.unsqueeze(-1), rows, 0.0), self.group)

    def extra_repr(self) -> str:
        return _describe(self.num_embeddings, self.embedding_dim, self.group)


def _describe(inputs: int, outputs: int | tuple[int, ...], group: ParallelGroup) -> str:
    return f"{inputs}, {outputs}, {group.name}={group.size}"
