"""The norm of the VAE, over the channels of each pixel."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

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
