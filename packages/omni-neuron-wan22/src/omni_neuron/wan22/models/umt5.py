"""The UMT5 text encoder, cut over a parallel group by heads, feed-forward columns and vocabulary rows.

Source: T5 (Raffel et al. 2020) in its 1.1 form with gated GELU, and UMT5 (Chung et al. 2023), where every
layer owns its relative position bias. Parameter names are those of transformers' ``UMT5EncoderModel``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.tensor_parallel import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.config import TEXT_LENGTH
from omni_neuron.wan22.models.umt5_attention import UMT5Attention, relative_position_buckets
from omni_neuron.wan22.models.umt5_config import UMT5Config


class UMT5LayerNorm(nn.Module):
    """Root-mean-square norm with the variance in fp32, no mean and no bias."""

    def __init__(
        self,
        size: int,
        epsilon: float,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(size, dtype=dtype, device=device))

    def forward(self, x: Tensor) -> Tensor:
        variance = x.float().pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + self.epsilon)).to(x.dtype)


class GatedFeedForward(nn.Module):
    """``wo(gelu(wi_0 x) * wi_1 x)`` with the tanh form of GELU."""

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
        size, inner = config.d_model, config.d_ff
        self.wi_0 = ColumnParallelLinear(size, inner, group, bias=False, dtype=dtype, device=device)
        self.wi_1 = ColumnParallelLinear(size, inner, group, bias=False, dtype=dtype, device=device)
        self.wo = RowParallelLinear(
            inner, size, group, bias=False, reduce_dtype=reduce_dtype, dtype=dtype, device=device
        )

    def forward(self, x: Tensor) -> Tensor:
        gated = functional.gelu(self.wi_0(x), approximate="tanh") * self.wi_1(x)  # [B, L, d_ff/tp]
        hidden: Tensor = self.wo(gated)
        return hidden


class UMT5Block(nn.Module):
    """Pre-norm attention and pre-norm feed-forward, each with a residual."""

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

        def norm() -> UMT5LayerNorm:
            return UMT5LayerNorm(config.d_model, config.layer_norm_epsilon, dtype=dtype, device=device)

        attention = UMT5Attention(config, group, reduce_dtype=reduce_dtype, dtype=dtype, device=device)
        feed_forward = GatedFeedForward(config, group, reduce_dtype=reduce_dtype, dtype=dtype, device=device)
        self.layer = nn.ModuleList(
            [
                nn.ModuleDict({"SelfAttention": attention, "layer_norm": norm()}),
                nn.ModuleDict({"DenseReluDense": feed_forward, "layer_norm": norm()}),
            ]
        )

    def forward(self, x: Tensor, mask: Tensor, buckets: Tensor) -> Tensor:
        attention, feed_forward = self.layer
        assert isinstance(attention, nn.ModuleDict)
        assert isinstance(feed_forward, nn.ModuleDict)
        x = x + attention["SelfAttention"](attention["layer_norm"](x), mask, buckets)
        hidden: Tensor = x + feed_forward["DenseReluDense"](feed_forward["layer_norm"](x))
        return hidden


class UMT5Encoder(nn.Module):
    """Token ids to text embeddings.

    Args:
        config: geometry.
        group: ranks that share the encoder, one rank when None.
        dtype: of the weights and the result.
        device: where the weights live.
        max_length: longest sequence that ``forward`` takes, in tokens.
        reduce_dtype: payload of the all-reduces.

    Raises:
        ShardingError: the group's size does not divide ``num_heads`` or ``d_ff``.
    """

    aliases: Mapping[str, Sequence[str]] = {"encoder.embed_tokens.weight": ("shared.weight",)}
    """Checkpoint keys of the tied embedding, of which one is enough."""

    relative_position_buckets: Tensor

    @property
    def load_options(self) -> dict[str, Any]:
        """What ``load_sharded`` and ``check_sharded`` need to know of this model."""
        return {"aliases": self.aliases}

    def __init__(
        self,
        config: UMT5Config,
        group: ParallelGroup | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
        *,
        max_length: int = TEXT_LENGTH,
        reduce_dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.config = config
        self.max_length = max_length
        group = group or ParallelGroup.single("text_encoder")
        self.encoder = nn.ModuleDict(
            {
                "embed_tokens": VocabParallelEmbedding(
                    config.vocab_size, config.d_model, group, dtype=dtype, device=device
                ),
                "block": nn.ModuleList(
                    UMT5Block(config, group, reduce_dtype=reduce_dtype, dtype=dtype, device=device)
                    for _ in range(config.num_layers)
                ),
                "final_layer_norm": UMT5LayerNorm(
                    config.d_model, config.layer_norm_epsilon, dtype=dtype, device=device
                ),
            }
        )
        # No checkpoint has it, so it is filled here even when the weights are still on the meta device.
        buckets = relative_position_buckets(
            max_length, config.relative_attention_num_buckets, config.relative_attention_max_distance
        )
        if device is not None and torch.device(device).type != "meta":
            buckets = buckets.to(device)
        self.register_buffer("relative_position_buckets", buckets, persistent=False)

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the weights."""
        return next(self.parameters()).dtype

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Embed token ids.

        Args:
            input_ids: integers ``[B, L]``, ``L`` at most ``max_length``.
            attention_mask: ``[B, L]``, 1 for tokens and 0 for padding.

        Returns:
            ``[B, L, d_model]`` in ``dtype``; the rows of padding are zero, as the transformer expects them.

        Raises:
            InputError: the shapes do not fit.
        """
        length = input_ids.shape[-1]
        if length > self.max_length:
            raise InputError(f"text of {length} tokens must have at most {self.max_length}; shorten it.")
        if input_ids.dim() != 2 or attention_mask.shape != input_ids.shape:
            raise InputError(
                f"attention_mask of shape {tuple(attention_mask.shape)} and input_ids of shape "
                f"{tuple(input_ids.shape)} must both be [B, L]; pass what the tokenizer returns."
            )
        x = self.encoder["embed_tokens"](input_ids)
        present = attention_mask.to(x.dtype)
        mask = ((1.0 - present) * torch.finfo(x.dtype).min)[:, None, None, :]
        buckets = self.relative_position_buckets[:length, :length]
        blocks = self.encoder["block"]
        assert isinstance(blocks, nn.ModuleList)
        for block in blocks:
            x = block(x, mask, buckets)
        hidden: Tensor = self.encoder["final_layer_norm"](x) * present.unsqueeze(-1)
        return hidden
