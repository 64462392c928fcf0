"""Decoder of the Wan VAE: latent frames to pixels, one latent frame per call."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from omni_neuron.wan22.models.vae_blocks import MidBlock
from omni_neuron.wan22.models.vae_causal_conv import HISTORY_FRAMES, CausalConv3d, FeatureCache, FirstChunk
from omni_neuron.wan22.models.vae_config import WanVAEConfig
from omni_neuron.wan22.models.vae_norm import ChannelRMSNorm, normalized_silu
from omni_neuron.wan22.models.vae_stages import ResidualUpStage, UpStage


class WanDecoder3d(nn.Module):
    """Convolution, middle block, stages of growing resolution, norm, SiLU, convolution.

    Source: Wan (arXiv 2503.20314) section 4.1; parameter names are diffusers'.
    """

    def __init__(
        self,
        config: WanVAEConfig,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        dims = config.decoder_dims
        self.conv_in = CausalConv3d(config.z_dim, dims[0], (3, 3, 3), dtype=dtype, device=device)
        self.mid_block = MidBlock(dims[0], dtype=dtype, device=device)
        self.up_blocks = nn.ModuleList()
        for index, (before, after) in enumerate(pairwise(dims)):
            upsample = index < len(config.temporal_upsample)
            stage = ResidualUpStage if config.is_residual else UpStage
            # The upsampling of the 2.1 VAE has halved the width.
            halved = index > 0 and not config.is_residual
            self.up_blocks.append(
                stage(
                    before // 2 if halved else before,
                    after,
                    config.num_res_blocks,
                    upsample=upsample,
                    temporal=upsample and config.temporal_upsample[index],
                    dtype=dtype,
                    device=device,
                )
            )
        self.norm_out = ChannelRMSNorm(dims[-1], dtype=dtype, device=device)
        self.conv_out = CausalConv3d(dims[-1], config.out_channels, (3, 3, 3), dtype=dtype, device=device)

    def cache_shapes(self, batch: int, height: int, width: int) -> list[tuple[int, int, int, int, int]]:
        """Shapes ``(B, C, 2, H, W)`` of the histories in order of use, for latents of ``height x width``."""
        last_scale = 2 ** (len(self.up_blocks) - 1)
        channels_and_scale = [(self.conv_in.in_channels, 1)]
        channels_and_scale += [(channels, 1) for channels in self.mid_block.cache_channels()]
        for index, stage in enumerate(self.up_blocks):
            channels_and_scale += [(channels, 2**index) for channels in stage.cache_channels()]  # type: ignore[operator]
        channels_and_scale.append((self.conv_out.in_channels, last_scale))
        return [
            (batch, channels, HISTORY_FRAMES, height * scale, width * scale)
            for channels, scale in channels_and_scale
        ]

    def forward(self, x: Tensor, first_chunk: FirstChunk, cache: FeatureCache) -> Tensor:
        """``[B, z, 1, h, w]`` -> ``[B, C, 4, 8h, 8w]`` (1 frame if ``first_chunk`` is the bool True)."""
        x = self.conv_in(x, cache)
        x = self.mid_block(x, first_chunk, cache)
        for stage in self.up_blocks:
            x = stage(x, first_chunk, cache)
        pixels: Tensor = self.conv_out(normalized_silu(self.norm_out, x), cache)
        return pixels
