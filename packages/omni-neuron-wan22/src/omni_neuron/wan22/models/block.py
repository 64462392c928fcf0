"""One block of the Wan transformer."""

from __future__ import annotations

import torch
from torch import nn

from omni_neuron.distributed.groups import ParallelContext
from omni_neuron.wan22.models.attention import AttentionFactory, WanCrossAttention, WanSelfAttention
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.feed_forward import WanFeedForward
from omni_neuron.wan22.models.norms import FP32LayerNorm, gated_residual, modulated_layer_norm


class WanTransformerBlock(nn.Module):
    """Self-attention, cross-attention and feed-forward, the first and last modulated by time (adaLN).

    The modulation is the block's own table plus the time projection, in float32: shift, scale and gate
    of self-attention, then of the feed-forward.
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
        super().__init__()
        dim = config.inner_dim
        self.eps = config.eps
        self.attn1 = WanSelfAttention(config, parallel, attention, dtype=dtype, device=device)
        self.attn2 = WanCrossAttention(config, parallel, attention, dtype=dtype, device=device)
        self.norm2 = (
            FP32LayerNorm(dim, config.eps, device=device) if config.cross_attn_norm else nn.Identity()
        )
        self.ffn = WanFeedForward(
            dim,
            config.ffn_dim,
            dim,
            parallel.tp,
            reduce_dtype=parallel.tp_reduce_dtype,
            dtype=dtype,
            device=device,
        )
        self.scale_shift_table = nn.Parameter(torch.empty(1, 6, dim, dtype=torch.float32, device=device))

    def forward(
        self,
        x: torch.Tensor,
        context: torch.Tensor,
        modulation: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        key_mask: torch.Tensor | None,
    ) -> torch.Tensor:
        """``x [B, S/cp, d]``, context ``[B, n, d]``, modulation ``[B, 1 or S/cp, 6, d]`` -> as ``x``."""

        def part(index: int) -> torch.Tensor:  # one at a time: per token, six of them outweigh the stream
            return modulation[:, :, index].float() + self.scale_shift_table[:, index]

        normed = modulated_layer_norm(x, part(0), part(1), self.eps)
        x = gated_residual(x, self.attn1(normed, cos, sin, key_mask), part(2))

        x = x + self.attn2(self.norm2(x), context)

        normed = modulated_layer_norm(x, part(3), part(4), self.eps)
        return gated_residual(x, self.ffn(normed), part(5))
