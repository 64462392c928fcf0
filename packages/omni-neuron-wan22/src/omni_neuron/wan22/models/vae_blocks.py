"""Building blocks of the VAE at constant resolution: residual block, attention, and both in the middle."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from omni_neuron.wan22.models.vae_causal_conv import CausalConv3d, FeatureCache, FirstChunk, silence_surplus
from omni_neuron.wan22.models.vae_norm import ChannelRMSNorm, normalized_silu


class ResidualBlock(nn.Module):
    """Two times norm, SiLU and causal 3x3x3 convolution, beside a 1x1x1 shortcut where widths differ."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.norm1 = ChannelRMSNorm(in_channels, dtype=dtype, device=device)
        self.conv1 = CausalConv3d(in_channels, out_channels, (3, 3, 3), dtype=dtype, device=device)
        self.norm2 = ChannelRMSNorm(out_channels, dtype=dtype, device=device)
        self.conv2 = CausalConv3d(out_channels, out_channels, (3, 3, 3), dtype=dtype, device=device)
        self.conv_shortcut = (
            nn.Identity()
            if in_channels == out_channels
            else CausalConv3d(in_channels, out_channels, (1, 1, 1), dtype=dtype, device=device)
        )

    def cache_channels(self) -> Iterator[int]:
        """Channels of the histories that ``forward`` uses, in order."""
        yield self.conv1.in_channels
        yield self.conv2.in_channels

    def forward(self, x: Tensor, first_chunk: FirstChunk, cache: FeatureCache) -> Tensor:
        """``[B, C, T, H, W]`` -> ``[B, C', T, H, W]``."""
        hidden = self.conv1(normalized_silu(self.norm1, x), cache)
        hidden = silence_surplus(hidden, first_chunk)
        hidden = self.conv2(normalized_silu(self.norm2, hidden), cache)
        return silence_surplus(hidden.add_(self.conv_shortcut(x)), first_chunk)


class AttentionBlock(nn.Module):
    """Single-head self-attention among the positions of each frame, with a residual."""

    def __init__(
        self, channels: int, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> None:
        super().__init__()
        self.norm = ChannelRMSNorm(channels, broadcast_dims=2, dtype=dtype, device=device)
        self.to_qkv = nn.Conv2d(channels, 3 * channels, 1, dtype=dtype, device=device)
        self.proj = nn.Conv2d(channels, channels, 1, dtype=dtype, device=device)

    def forward(self, x: Tensor) -> Tensor:
        """``[B, C, T, H, W]`` -> same shape."""
        batch, channels, frames, height, width = x.shape
        images = x.transpose(1, 2).reshape(batch * frames, channels, height, width)
        qkv = self.to_qkv(self.norm(images)).flatten(2).transpose(1, 2)  # [B*T, H*W, 3C]
        query, key, value = qkv.unsqueeze(1).contiguous().chunk(3, dim=-1)
        attended = functional.scaled_dot_product_attention(query, key, value).squeeze(1)
        projected: Tensor = self.proj(attended.transpose(1, 2).reshape(images.shape))
        # As the first operand it hands on its memory layout, which the sums of later norms depend on.
        return projected.view(batch, frames, channels, height, width).transpose(1, 2) + x


class MidBlock(nn.Module):
    """Residual block, attention, residual block at the resolution of the latents."""

    def __init__(
        self, channels: int, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(
            ResidualBlock(channels, channels, dtype=dtype, device=device) for _ in range(2)
        )
        self.attentions = nn.ModuleList([AttentionBlock(channels, dtype=dtype, device=device)])

    def cache_channels(self) -> Iterator[int]:
        """Channels of the histories that ``forward`` uses, in order."""
        for block in self.resnets:
            yield from block.cache_channels()  # type: ignore[operator]

    def forward(self, x: Tensor, first_chunk: FirstChunk, cache: FeatureCache) -> Tensor:
        """``[B, C, 1, H, W]`` -> same shape."""
        x = self.resnets[0](x, first_chunk, cache)
        x = self.attentions[0](x)
        hidden: Tensor = self.resnets[1](x, first_chunk, cache)
        return hidden
