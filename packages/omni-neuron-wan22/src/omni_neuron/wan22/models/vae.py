"""The Wan video autoencoder as the pipelines see it. It decodes; the encoder is not part of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.vae_causal_conv import CausalConv3d, FeatureCache, FirstChunk
from omni_neuron.wan22.models.vae_config import WanVAEConfig
from omni_neuron.wan22.models.vae_decoder import WanDecoder3d

DecodeChunk = Callable[[Tensor, FirstChunk, list[Tensor]], tuple[Tensor, list[Tensor]]]


class NeuronAutoencoderKLWan(nn.Module):
    """Decoder of the Wan 2.1 and 2.2 VAE with diffusers' parameter names.

    Args:
        config: geometry.
        dtype: of the weights, the latents and the video.
        device: where the weights live.
    """

    ignored_keys: tuple[str, ...] = ("encoder.", "quant_conv.")
    """Prefixes of checkpoint keys that decoding does not need."""

    def __init__(
        self,
        config: WanVAEConfig,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.post_quant_conv = CausalConv3d(config.z_dim, config.z_dim, (1, 1, 1), dtype=dtype, device=device)
        self.decoder = WanDecoder3d(config, dtype=dtype, device=device)
        self._compiled_chunk: DecodeChunk | None = None

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the weights."""
        return self.post_quant_conv.weight.dtype

    @property
    def load_options(self) -> dict[str, Any]:
        """What ``load_sharded`` and ``check_sharded`` need to know of this model."""
        return {"ignore": self.ignored_keys}

    def compile_chunks(self, compiler: Callable[[DecodeChunk], DecodeChunk]) -> None:
        """Let ``decode`` run chunks through ``compiler(decode_chunk)``.

        Every chunk then has the same shapes and the first-chunk flag is a tensor, so one graph serves all
        chunks of a resolution.
        """
        self._compiled_chunk = compiler(self.decode_chunk)

    def allocate_caches(self, z: Tensor) -> list[Tensor]:
        """Zeros for every history that decoding ``z`` ``[B, z, T, h, w]`` needs."""
        batch, _, _, height, width = z.shape
        return [z.new_zeros(shape) for shape in self.decoder.cache_shapes(batch, height, width)]

    def decode_chunk(
        self, z_chunk: Tensor, first_chunk: FirstChunk, caches: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Decode one latent frame.

        Args:
            z_chunk: ``[B, z, 1, h, w]``.
            first_chunk: whether this is frame 0. As a bool True the result has one frame. As a 0-dim bool
                tensor the result always has ``scale_factor_temporal`` frames, of which only the last one
                counts in the first chunk.
            caches: from ``allocate_caches`` or the previous chunk. A list is updated in place.

        Returns:
            Frames ``[B, 3, 4, H, W]`` in -1..1, and the caches for the next chunk.
        """
        cache = FeatureCache(caches)
        pixels = self.decoder(self.post_quant_conv(z_chunk), first_chunk, cache)
        frames = _unpatchify(pixels, self.config.patch_size or 1)
        return frames.clamp(-1.0, 1.0), cache.slots

    @torch.no_grad()
    def decode(self, z: Tensor, return_dict: bool = False) -> tuple[Tensor]:
        """Latents to video.

        Args:
            z: ``[B, z, T, h, w]`` in ``dtype``, latent normalisation already undone.
            return_dict: must be False; there is no other form of result.

        Returns:
            A 1-tuple with the video ``[B, 3, 4(T-1)+1, H, W]`` in -1..1 and in ``dtype``.

        Raises:
            InputError: ``z`` is not 5-dimensional with ``z_dim`` channels, or ``return_dict`` is True.
        """
        if return_dict:
            raise InputError("decode return_dict=True is not supported; pass return_dict=False.")
        if z.dim() != 5 or z.shape[1] != self.config.z_dim or z.shape[2] == 0:
            raise InputError(
                f"latents of shape {tuple(z.shape)} must be [B, {self.config.z_dim}, T >= 1, h, w]; "
                "check that they belong to this VAE."
            )
        batch, _, chunks, height, width = z.shape
        per_chunk = self.config.scale_factor_temporal
        scale = self.config.scale_factor_spatial
        channels = self.config.out_channels // (self.config.patch_size or 1) ** 2
        video = z.new_empty(batch, channels, per_chunk * (chunks - 1) + 1, scale * height, scale * width)
        caches = self.allocate_caches(z)
        try:
            for index in range(chunks):
                chunk = z[:, :, index : index + 1].contiguous()
                frames, caches = self._run_chunk(chunk, index == 0, caches)
                end = per_chunk * index + 1
                start = max(end - per_chunk, 0)
                video[:, :, start:end] = frames[:, :, start - end :]
        finally:
            # Not left to the garbage collector: a traceback would keep gigabytes alive.
            caches.clear()
        return (video,)

    def _run_chunk(
        self, chunk: Tensor, first_chunk: bool, caches: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        if self._compiled_chunk is None:
            return self.decode_chunk(chunk, first_chunk, caches)
        return self._compiled_chunk(chunk, torch.tensor(first_chunk, device=chunk.device), caches)


def _unpatchify(x: Tensor, patch: int) -> Tensor:
    """``[B, 3*p*p, T, h, w]`` -> ``[B, 3, T, p*h, p*w]``; the channel order is (colour, column, row)."""
    if patch == 1:
        return x
    batch, channels, frames, height, width = x.shape
    cells = x.view(batch, channels // patch**2, patch, patch, frames, height, width)
    pixels = cells.permute(0, 1, 4, 5, 3, 6, 2)
    return pixels.reshape(batch, channels // patch**2, frames, patch * height, patch * width)
