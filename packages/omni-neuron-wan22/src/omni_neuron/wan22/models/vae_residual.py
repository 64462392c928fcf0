"""Building blocks of the VAE at constant resolution: norm, residual block, attention."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from omni_neuron.wan22.models.vae_causal_conv import CausalConv3d, FeatureCache, FirstChunk, silence_surplus

_SMALLEST_NORM = 1e-12


class ChannelRMSNorm(nn.Module):
    """``x / max(|x|, 1e-12) * sqrt(C) * gamma`` with the L2 norm over the channels (dim 1), in fp32."""

    def __init__(
        self,
        channels: int,
        broadcast_dims: int = 3,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels, *[1] * broadcast_dims, dtype=dtype, device=device))

    def forward(self, x: Tensor) -> Tensor:
        """``[B, C, ...]`` -> same shape and dtype."""
        return self.normalize(x).to(x.dtype)

    def normalize(self, x: Tensor) -> Tensor:
        """``forward`` before its only rounding: a new fp32 tensor."""
        full, gamma, scale = x.float(), self.gamma.float(), self.gamma.shape[0] ** 0.5
        if torch.compiler.is_compiling():
            # F.normalize guards against NaN, which costs more than the norm itself on the device.
            inverse = full.square().sum(1, keepdim=True).clamp_min(_SMALLEST_NORM**2).rsqrt()
            graphed: Tensor = full * inverse * (gamma * scale)
            return graphed
        return (full / channel_norm(full).clamp_min_(_SMALLEST_NORM)).mul_(scale).mul_(gamma)


def channel_norm(x: Tensor) -> Tensor:
    """L2 norm over dim 1, ``[B, C, ...]`` -> ``[B, 1, ...]``, bit-equal to ``torch.linalg.vector_norm``.

    Unless the channels lie side by side, that function adds the squares channel after channel and roots
    exactly. Here the additions are those of whole images, which takes a tenth of the time; a tree-like sum
    would differ in the last bit, of which the dozens of norms in a decoder would make more than 1e-6.
    """
    if x.stride(1) == 1:
        norm: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
        return norm
    squares = x.square()
    total = torch.zeros_like(squares[:, :1])
    total.index_add_(1, torch.zeros(x.shape[1], dtype=torch.int64, device=x.device), squares)
    return total.double().sqrt_().float()


def normalized_silu(norm: ChannelRMSNorm, x: Tensor) -> Tensor:
    """Norm and SiLU with a single rounding to the dtype of ``x``."""
    return functional.silu(norm.normalize(x), inplace=True).to(x.dtype)


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
