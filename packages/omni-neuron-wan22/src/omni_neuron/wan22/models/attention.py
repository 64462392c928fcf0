"""Self- and cross-attention of a Wan block, heads cut over the tensor-parallel group."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from omni_neuron.distributed.context_parallel import (
    AttentionFn,
    attention_with_lse,
    context_parallel_attention,
    ulysses_heads,
)
from omni_neuron.distributed.errors import shard_size
from omni_neuron.distributed.groups import ParallelContext
from omni_neuron.distributed.tensor_parallel import (
    ColumnParallelLinear,
    FusedColumnParallelLinear,
    RowParallelLinear,
)
from omni_neuron.kernels.gate import can_run_kernel
from omni_neuron.wan22.models.config import TEXT_LENGTH, WanConfig
from omni_neuron.wan22.models.norms import DistributedRMSNorm
from omni_neuron.wan22.models.ring_kernel import ring_kernel
from omni_neuron.wan22.models.rope import rotate

AttentionFactory = Callable[[str, int, int], AttentionFn]
"""``factory(role, num_heads, head_dim)``, ``num_heads`` being this rank's.

Roles: ``"self"``, ``"cross"`` (text) and ``"cross_image"``. The softmax scale is ``1/sqrt(head_dim)``.
"""


def sdpa_attention(role: str, num_heads: int, head_dim: int) -> AttentionFn:
    """Torch's scaled dot-product attention, for every role."""
    return _sdpa


def _sdpa(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, key_mask: torch.Tensor | None = None
) -> torch.Tensor:
    """``[B, Sq, H, D], [B, Sk, H, D] -> [B, Sq, H, D]``; ``key_mask`` bool ``[B, Sk]``, True = attend."""
    mask = None if key_mask is None else key_mask[:, None, None, :]
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2)


class _Attention(nn.Module):
    """What both kinds share: the norms of query and key over all heads, and the output projection."""

    def __init__(
        self,
        config: WanConfig,
        parallel: ParallelContext,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        dim = config.inner_dim
        self.parallel = parallel
        self.head_dim = config.attention_head_dim
        self.num_heads = shard_size("num_attention_heads", config.num_attention_heads, parallel.tp.size)
        self.norm_q = DistributedRMSNorm(dim, parallel.tp, config.eps, dtype=dtype, device=device)
        self.norm_k = DistributedRMSNorm(dim, parallel.tp, config.eps, dtype=dtype, device=device)
        out = RowParallelLinear(
            dim, dim, parallel.tp, reduce_dtype=parallel.tp_reduce_dtype, dtype=dtype, device=device
        )
        self.to_out = nn.ModuleList([out])

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        """``[B, S, H/tp * D] -> [B, S, H/tp, D]``"""
        return x.view(*x.shape[:-1], self.num_heads, self.head_dim)

    def _project_out(self, attended: torch.Tensor) -> torch.Tensor:
        """``[B, S, H/tp, D] -> [B, S, d]``"""
        out: torch.Tensor = self.to_out[0](attended.flatten(2))
        return out


class WanSelfAttention(_Attention):
    """Attention of every token to every token of the video, with rotary positions.

    ``to_qkv`` joins diffusers' ``to_q``, ``to_k`` and ``to_v``.
    """

    def __init__(
        self,
        config: WanConfig,
        parallel: ParallelContext,
        attention: AttentionFactory,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(config, parallel, dtype=dtype, device=device)
        dim = config.inner_dim
        self.to_qkv = FusedColumnParallelLinear(dim, (dim, dim, dim), parallel.tp, dtype=dtype, device=device)
        self.attention = attention(
            "self", ulysses_heads(self.num_heads, parallel.ulysses.size), self.head_dim
        )

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, key_mask: torch.Tensor | None
    ) -> torch.Tensor:
        """``x [B, S/cp, d]``, tables ``[1, S/cp, 1, D/2]``, ``key_mask [S_padded]`` -> ``[B, S/cp, d]``."""
        query, key, value = self.to_qkv(x)  # [B, S/cp, d/tp]
        query_scale, key_scale = self.norm_q.inverse_rms(query, key)
        query = self._normed_and_rotated(query, query_scale, self.norm_q.weight, cos, sin)
        key = self._normed_and_rotated(key, key_scale, self.norm_k.weight, cos, sin)
        attended = context_parallel_attention(
            self.attention,
            query,
            key,
            self._heads(value),
            self.parallel,
            key_mask,
            ring=attention_with_lse if self.parallel.ring_attention else None,
            whole_ring=ring_kernel if self.parallel.ring_attention and can_run_kernel(query) else None,
        )
        return self._project_out(attended)

    def _normed_and_rotated(
        self,
        x: torch.Tensor,
        scale: torch.Tensor,
        weight: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
    ) -> torch.Tensor:
        # A rotation commutes with a factor per token, so the norm's scale goes into the small tables.
        scale = scale.unsqueeze(-1)  # [B, S/cp, 1, 1]
        return rotate(self._heads(x * weight.float()), cos * scale, sin * scale).to(x.dtype)


class WanCrossAttention(_Attention):
    """Attention of the video tokens to the text and, in checkpoints that have it, to the image.

    ``to_kv`` joins diffusers' ``to_k`` and ``to_v``. Every rank of the context-parallel group holds the
    whole context.
    """

    def __init__(
        self,
        config: WanConfig,
        parallel: ParallelContext,
        attention: AttentionFactory,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(config, parallel, dtype=dtype, device=device)
        dim, tp = config.inner_dim, parallel.tp
        self.to_q = ColumnParallelLinear(dim, dim, tp, dtype=dtype, device=device)
        self.to_kv = FusedColumnParallelLinear(dim, (dim, dim), tp, dtype=dtype, device=device)
        self.attention = attention("cross", self.num_heads, self.head_dim)
        self.has_image = config.added_kv_proj_dim is not None
        if config.added_kv_proj_dim is not None:
            added = config.added_kv_proj_dim
            self.add_k_proj = ColumnParallelLinear(added, dim, tp, dtype=dtype, device=device)
            self.add_v_proj = ColumnParallelLinear(added, dim, tp, dtype=dtype, device=device)
            self.norm_added_k = DistributedRMSNorm(dim, tp, config.eps, dtype=dtype, device=device)
            self.image_attention = attention("cross_image", self.num_heads, self.head_dim)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """``x [B, S/cp, d]``, ``context [B, image + text, d]`` -> ``[B, S/cp, d]``."""
        image_length = context.shape[1] - TEXT_LENGTH if self.has_image else 0
        text = context[:, image_length:]
        query = self._heads(self.norm_q(self.to_q(x)))
        key, value = self.to_kv(text)
        attended = self.attention(query, self._heads(self.norm_k(key)), self._heads(value), None)
        if self.has_image:
            image = context[:, :image_length]
            key = self.norm_added_k(self.add_k_proj(image))
            value = self.add_v_proj(image)
            attended = attended + self.image_attention(query, self._heads(key), self._heads(value), None)
        return self._project_out(attended)
