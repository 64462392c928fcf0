"""Stages of the VAE decoder: residual blocks of one resolution and the way to the next one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor, nn

from omni_neuron.wan22.models.vae_blocks import ResidualBlock
from omni_neuron.wan22.models.vae_causal_conv import FeatureCache, FirstChunk
from omni_neuron.wan22.models.vae_upsample import DuplicateUpsample, Upsample


class UpStage(nn.Module):
    """Residual blocks of one resolution, as in the 2.1 VAE, and the upsampling to the next one.

    The module names are the checkpoint's: ``upsamplers.0`` here, ``upsampler`` in `ResidualUpStage`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_res_blocks: int,
        *,
        upsample: bool,
        temporal: bool,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.resnets = _resnets(in_channels, out_channels, num_res_blocks, dtype, device)
        self.upsamplers = nn.ModuleList()
        if upsample:
            halved = out_channels // 2
            self.upsamplers.append(
                Upsample(out_channels, halved, temporal=temporal, dtype=dtype, device=device)
            )

    def cache_channels(self) -> Iterator[int]:
        """Channels of the histories that ``forward`` uses, in order."""
        for block in (*self.resnets, *self.upsamplers):
            yield from block.cache_channels()

    def forward(self, x: Tensor, first_chunk: FirstChunk, cache: FeatureCache) -> Tensor:
        """``[B, C, T, H, W]`` -> ``[B, C', T or 2T, H or 2H, W or 2W]``."""
        for block in (*self.resnets, *self.upsamplers):
            x = block(x, first_chunk, cache)
        return x


class ResidualUpStage(nn.Module):
    """Stage of the 2.2 VAE: as `UpStage`, but upsampling keeps the width and a shortcut bridges the stage."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_res_blocks: int,
        *,
        upsample: bool,
        temporal: bool,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.resnets = _resnets(in_channels, out_channels, num_res_blocks, dtype, device)
        self.upsampler: Upsample | None = None
        self.shortcut: DuplicateUpsample | None = None
        if upsample:
            self.upsampler = Upsample(
                out_channels, out_channels, temporal=temporal, dtype=dtype, device=device
            )
            self.shortcut = DuplicateUpsample(in_channels, out_channels, temporal=temporal)

    def cache_channels(self) -> Iterator[int]:
        """Channels of the histories that ``forward`` uses, in order."""
        for block in self.resnets:
            yield from block.cache_channels()  # type: ignore[operator]
        if self.upsampler is not None:
            yield from self.upsampler.cache_channels()

    def forward(self, x: Tensor, first_chunk: FirstChunk, cache: FeatureCache) -> Tensor:
        """``[B, C, T, H, W]`` -> ``[B, C', T or 2T, H or 2H, W or 2W]``."""
        hidden: Tensor = x
        for block in self.resnets:
            hidden = block(hidden, first_chunk, cache)
        if self.upsampler is None or self.shortcut is None:
            return hidden
        upsampled: Tensor = self.upsampler(hidden, first_chunk, cache)
        bridge: Tensor = self.shortcut(x, first_chunk)
        return upsampled + bridge


def _resnets(
    in_channels: int,
    out_channels: int,
    num_res_blocks: int,
    dtype: torch.dtype | None,
    device: torch.device | str | None,
) -> nn.ModuleList:
    widths = [in_channels, *[out_channels] * (num_res_blocks + 1)]
    return nn.ModuleList(
        ResidualBlock(before, after, dtype=dtype, device=device) for before, after in pairwise(widths)
    )
