"""Causal 3-D convolution as the kernel computes it: float32 within, one rounding at the end."""

import torch
from torch import Tensor
from torch.nn import functional


def pack_weight(weight: Tensor) -> Tensor:
    """A weight of `torch.nn.Conv3d` or `Conv2d` in the kernel's layout.

    Args:
        weight: `[Cout, Cin, kt, kh, kw]`, or `[Cout, Cin, kh, kw]` for a single frame.

    Returns:
        `[kt, kh, kw, Cin, Cout]`, contiguous.
    """
    volume = weight if weight.dim() == 5 else weight.unsqueeze(2)
    return volume.permute(2, 3, 4, 1, 0).contiguous()


def extended(x: Tensor, frames: int, history: Tensor | None) -> Tensor:
    """x `[B, C, T, H, W]` with `frames` frames in front: the history, or zeros."""
    if history is not None:
        return torch.cat([history, x], dim=2)
    return functional.pad(x, (0, 0, 0, 0, frames, 0))


def causal_conv3d_twin(x: Tensor, weight: Tensor, bias: Tensor, history: Tensor | None) -> Tensor:
    """As `causal_conv3d` (Wan, arXiv 2503.20314, section 4.1)."""
    kt, kh, kw = weight.shape[:3]
    filters = weight.float().permute(4, 3, 0, 1, 2)
    volume = extended(x, kt - 1, history).float()
    return functional.conv3d(volume, filters, bias.float(), padding=(0, kh // 2, kw // 2)).to(x.dtype)
