"""Configuration of the Wan video autoencoders, as diffusers writes it to ``vae/config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.config_file import REMEDY, ConfigFile

# fmt: off
_LATENTS_MEAN_16 = (
    -0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508,
    0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921,
)
_LATENTS_STD_16 = (
    2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
    3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160,
)
# fmt: on


@dataclass(frozen=True)
class WanVAEConfig(ConfigFile):
    """Geometry of the Wan VAE; names and defaults are those of diffusers' ``AutoencoderKLWan``.

    Two families exist: the 2.1 VAE (``is_residual`` false, 16 latent channels, 8x8 pixels per latent)
    and the 2.2 VAE (``is_residual`` true, ``patch_size`` 2, 48 latent channels, 16x16 pixels).
    Both hold four frames in one latent frame, apart from the first latent frame, which holds one.

    ``latents_mean`` and ``latents_std`` normalise the latent channels; the caller undoes it before
    ``decode``. ``dropout`` acts in training only.

    Raises:
        InputError: a field contradicts another one, or needs a part that this decoder does not have.
    """

    component = "VAE"
    inert = frozenset({"clip_output"})  # in published files; the output is always clamped
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "base_dim": (1, 2**16),
        "decoder_base_dim": (1, 2**16),
        "z_dim": (1, 1024),
        "dim_mult": (1, 64),
        "num_res_blocks": (1, 64),
        "dropout": (0, 1),
        "latents_mean": (-1e6, 1e6),
        "latents_std": (1e-6, 1e6),
        "in_channels": (1, 1024),
        "out_channels": (1, 1024),
        "patch_size": (1, 64),
    }

    base_dim: int = 96
    decoder_base_dim: int | None = None
    z_dim: int = 16
    dim_mult: tuple[int, ...] = (1, 2, 4, 4)
    num_res_blocks: int = 2
    attn_scales: tuple[float, ...] = ()
    temperal_downsample: tuple[bool, ...] = (False, True, True)
    dropout: float = 0.0
    latents_mean: tuple[float, ...] = _LATENTS_MEAN_16
    latents_std: tuple[float, ...] = _LATENTS_STD_16
    is_residual: bool = False
    in_channels: int = 3
    out_channels: int = 3
    patch_size: int | None = None
    scale_factor_temporal: int = 4
    scale_factor_spatial: int = 8

    def __post_init__(self) -> None:
        if self.attn_scales:
            raise InputError(
                f"VAE config attn_scales={list(self.attn_scales)}: attention inside the stages is not "
                "supported, no published Wan VAE has it; use a checkpoint with attn_scales=[]."
            )
        super().__post_init__()
        if len(self.temperal_downsample) != len(self.dim_mult) - 1:
            raise InputError(
                f"VAE config temperal_downsample={list(self.temperal_downsample)} must have one entry less "
                f"than dim_mult={list(self.dim_mult)}; {REMEDY}"
            )
        for name in ("latents_mean", "latents_std"):
            if len(getattr(self, name)) != self.z_dim:
                raise InputError(
                    f"VAE config {name} has {len(getattr(self, name))} entries but must have "
                    f"z_dim={self.z_dim}; {REMEDY}"
                )
        patch = self.patch_size or 1
        if self.out_channels % patch**2:
            raise InputError(
                f"VAE config out_channels={self.out_channels} must be a multiple of "
                f"patch_size**2={patch**2}; {REMEDY}"
            )
        expected = {
            "scale_factor_temporal": 2 ** sum(self.temperal_downsample),
            "scale_factor_spatial": 2 ** len(self.temperal_downsample) * patch,
        }
        for name, value in expected.items():
            if getattr(self, name) != value:
                raise InputError(
                    f"VAE config {name}={getattr(self, name)} but the stages give {value}; {REMEDY}"
                )

    @property
    def decoder_dims(self) -> tuple[int, ...]:
        """Channels at the entry of the decoder and behind each of its stages."""
        base = self.decoder_base_dim or self.base_dim
        return tuple(base * factor for factor in (self.dim_mult[-1], *reversed(self.dim_mult)))

    @property
    def temporal_upsample(self) -> tuple[bool, ...]:
        """For each upsampling stage of the decoder, whether it doubles the frames as well."""
        return tuple(reversed(self.temperal_downsample))
