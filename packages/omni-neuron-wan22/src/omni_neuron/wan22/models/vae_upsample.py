"""Doubling of the resolution in the VAE decoder, and of the frame rate on the way."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.vae_causal_conv import CausalConv3d, FeatureCache, FirstChunk, silence_surplus


def repeat_pixels(images: Tensor) -> Tensor:
    """Nearest-neighbour doubling ``[..., H, W]`` -> ``[..., 2H, 2W]``, by views that are written once each.

    ``nn.Upsample`` would become thousands of indirect copies on the device.
    """
    height, width = images.shape[-2:]
    wide = images.unsqueeze(-1).expand(*images.shape, 2).reshape(*images.shape[:-1], 1, 2 * width)
    tall = wide.expand(*images.shape[:-1], 2, 2 * width)
    return tall.reshape(*images.shape[:-2], 2 * height, 2 * width)


class Upsample(nn.Module):
    """Double height and width, followed by a 3x3 convolution; with ``temporal`` double the frames first.

    A frame becomes two by a causal convolution to twice the channels. The first latent frame of a video
    is the exception: it stays a single frame, and the convolution's history starts behind it.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        temporal: bool,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        # The checkpoint's key is ``resample.1``: its place 0 is an upsampling without parameters.
        self.resample = nn.ModuleDict(
            {"1": nn.Conv2d(in_channels, out_channels, 3, padding=1, dtype=dtype, device=device)}
        )
        self.time_conv = (
            CausalConv3d(in_channels, 2 * in_channels, (3, 1, 1), dtype=dtype, device=device)
            if temporal
            else None
        )

    def cache_channels(self) -> Iterator[int]:
        """Channels of the histories that ``forward`` uses, in order."""
        if self.time_conv is not None:
            yield self.time_conv.in_channels

    def forward(self, x: Tensor, first_chunk: FirstChunk, cache: FeatureCache) -> Tensor:
        """``[B, C, T, H, W]`` -> ``[B, C', T or 2T, 2H, 2W]``."""
        batch, channels, _, height, width = x.shape
        # Frames in front of the channels, for a convolution over single images.
        frames = x.transpose(1, 2)  # [B, T, C, H, W]
        if self.time_conv is not None:
            frames = self._double_frames(self.time_conv, x, first_chunk, cache)  # [B, T, 2, C, H, W]
        images = repeat_pixels(frames).view(-1, channels, 2 * height, 2 * width)
        images = self.resample["1"](images)
        x = images.view(batch, -1, *images.shape[1:]).transpose(1, 2)  # [B, C', T, 2H, 2W]
        return silence_surplus(x, first_chunk)

    @staticmethod
    def _double_frames(
        time_conv: CausalConv3d, x: Tensor, first_chunk: FirstChunk, cache: FeatureCache
    ) -> Tensor:
        """``[B, C, T, H, W]`` -> ``[B, T, 2, C, H, W]``, or ``[B, 1, 1, C, H, W]`` for a first chunk."""
        batch, channels, frames, height, width = x.shape
        if first_chunk is True:
            cache.skip()
            return x.transpose(1, 2).unsqueeze(2)
        pairs: Tensor = time_conv(x, cache, first_chunk)
        pairs = pairs.view(batch, 2, channels, frames, height, width)
        if isinstance(first_chunk, Tensor):
            pairs = torch.where(first_chunk, torch.stack([torch.zeros_like(x), x], dim=1), pairs)
        return pairs.permute(0, 3, 1, 2, 4, 5)


class DuplicateUpsample(nn.Module):
    """Parameter-free shortcut of the 2.2 VAE: channels are repeated, then unfolded into time and space.

    Output channel ``o`` at offset ``(i, j, k)`` inside a cell of ``factor_t x 2 x 2`` reads input channel
    ``(4 * factor_t * o + 4 * i + 2 * j + k) // repeats``.
    """

    def __init__(self, in_channels: int, out_channels: int, *, temporal: bool) -> None:
        super().__init__()
        self.out_channels = out_channels
        self.factor_t = 2 if temporal else 1
        cell = 4 * self.factor_t
        if out_channels * cell % in_channels:
            raise InputError(
                f"VAE stage of {in_channels} to {out_channels} channels: the outputs times {cell} must be a "
                "multiple of the inputs; take the config.json that belongs to the weights."
            )
        self.repeats = out_channels * cell // in_channels

    def forward(self, x: Tensor, first_chunk: FirstChunk) -> Tensor:
        """``[B, C, T, H, W]`` -> ``[B, C', factor_t * T, 2H, 2W]``."""
        batch, channels, frames, height, width = x.shape
        repeated = x.unsqueeze(2).expand(batch, channels, self.repeats, frames, height, width)
        cells = repeated.reshape(batch, self.out_channels, self.factor_t, 2, 2, frames, height, width)
        unfolded = cells.permute(0, 1, 5, 2, 6, 3, 7, 4).reshape(
            batch, self.out_channels, self.factor_t * frames, 2 * height, 2 * width
        )
        if first_chunk is True:
            return unfolded[:, :, self.factor_t - 1 :]
        return silence_surplus(unfolded, first_chunk)
