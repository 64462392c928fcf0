"""Self-attention of UMT5: no scale, and a learned bias per head and bucket of relative distance."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from omni_neuron.distributed.errors import shard_size
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.loading.weight_loaders import head_sharded, set_weight_loader
from omni_neuron.distributed.tensor_parallel import ColumnParallelLinear, RowParallelLinear
from omni_neuron.wan22.models.umt5_config import UMT5Config


def relative_position_buckets(length: int, num_buckets: int, max_distance: int) -> Tensor:
    """Bucket of every (query, key) pair, int32 ``[length, length]``, on the host.

    Half of the buckets are for keys behind the query. In each half, the first half of the buckets holds one
    distance each; the others grow logarithmically up to ``max_distance``. Source: T5 (Raffel et al. 2020)
    section 2.1, bidirectional form.
    """
    position = torch.arange(length, device="cpu")
    relative = position[None, :] - position[:, None]
    distance = relative.abs()
    per_direction = num_buckets // 2
    exact = per_direction // 2
    growth = torch.log(distance.float() / exact) / math.log(max_distance / exact)
    logarithmic = exact + (growth * (per_direction - exact)).long()
    bucket = torch.where(distance < exact, distance, logarithmic.clamp_max(per_direction - 1))
    return (bucket + (relative > 0) * per_direction).int()


class RelativeAttentionBias(nn.Module):
    """Table ``[num_buckets, heads/tp]`` that turns buckets ``[L, L]`` into a bias ``[1, heads/tp, L, L]``."""

    def __init__(
        self,
        num_buckets: int,
        num_heads: int,
        group: ParallelGroup,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        local = shard_size("num_heads", num_heads, group.size, degree=group.name)
        self.weight = nn.Parameter(torch.empty(num_buckets, local, dtype=dtype, device=device))
        set_weight_loader(self.weight, head_sharded(1, group, num_heads))

    def forward(self, buckets: Tensor) -> Tensor:
        return functional.embedding(buckets, self.weight).permute(2, 0, 1).unsqueeze(0)


class UMT5Attention(nn.Module):
    """Bidirectional attention over this rank's heads; every layer owns its relative bias.

    As in transformers, scores, bias and mask are added in the model's dtype and the softmax runs in fp32.
    """

    def __init__(
        self,
        config: UMT5Config,
        group: ParallelGroup,
        *,
        reduce_dtype: torch.dtype,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        inner = config.num_heads * config.d_kv
        self.head_dim = config.d_kv
        self.relative_attention_bias = RelativeAttentionBias(
            config.relative_attention_num_buckets, config.num_heads, group, dtype=dtype, device=device
        )
        self.q = ColumnParallelLinear(config.d_model, inner, group, bias=False, dtype=dtype, device=device)
        self.k = ColumnParallelLinear(config.d_model, inner, group, bias=False, dtype=dtype, device=device)
        self.v = ColumnParallelLinear(config.d_model, inner, group, bias=False, dtype=dtype, device=device)
        self.o = RowParallelLinear(
            inner, config.d_model, group, bias=False, reduce_dtype=reduce_dtype, dtype=dtype, device=device
        )

    def forward(self, x: Tensor, mask: Tensor, buckets: Tensor) -> Tensor:
        """``[B, L, d]`` -> same shape; additive ``mask`` ``[B, 1, 1, L]``, ``buckets`` ``[L, L]``."""
        query, key, value = (
            projection(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)  # [B, H/tp, L, D]
            for projection in (self.q, self.k, self.v)
        )
        bias = self.relative_attention_bias(buckets) + mask
        scores = query @ key.transpose(-1, -2) + bias
        weights = scores.float().softmax(-1).to(x.dtype)
        attended: Tensor = self.o((weights @ value).transpose(1, 2).flatten(2))
        return attended
