"""The sizes of a model that decide its cost: DiT, VAE and text encoder, as its config files state them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DiT:
    """A Wan video transformer: ``layers`` blocks of self-attention, cross-attention and feed-forward."""

    layers: int
    heads: int
    head_dim: int
    ffn: int
    in_channels: int
    out_channels: int
    patch: tuple[int, int, int] = (1, 2, 2)
    text_dim: int = 4096
    freq_dim: int = 256

    @property
    def width(self) -> int:
        """Model width d, all heads together."""
        return self.heads * self.head_dim


@dataclass(frozen=True)
class VAE:
    """A Wan causal video autoencoder; ``residual`` tells the 2.2 form, which works on 2x2 pixel patches."""

    base: int
    decoder_base: int
    z_dim: int
    multipliers: tuple[int, ...] = (1, 2, 4, 4)
    res_blocks: int = 2
    temporal_downsample: tuple[bool, ...] = (False, True, True)
    residual: bool = False
    image_channels: int = 3
    pixel_patch: int = 1
    temporal_scale: int = 4
    spatial_scale: int = 8


@dataclass(frozen=True)
class TextEncoder:
    """A UMT5 encoder: gated feed-forward, no biases, one relative position table per layer."""

    layers: int
    width: int
    heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    buckets: int = 32
    tokens: int = 512


@dataclass(frozen=True)
class Model:
    """One checkpoint: ``experts`` equal DiTs, of which one works at a time, a VAE and a text encoder."""

    name: str
    experts: int
    dit: DiT
    vae: VAE
    text_encoder: TextEncoder
    height: int
    width: int
    num_frames: int
    steps: int
    image_condition: bool = False
    per_token_time: bool = False

    @property
    def pixel_multiple(self) -> int:
        """Height and width must be multiples of this: one DiT token covers a square of that many pixels."""
        return self.vae.spatial_scale * self.dit.patch[1]


@dataclass(frozen=True)
class Job:
    """One request: a clip of ``num_frames`` frames, ``steps`` denoising steps, with or without guidance."""

    model: Model
    height: int
    width: int
    num_frames: int
    steps: int
    branches: int = 2
    image: bool = False

    @property
    def latent(self) -> tuple[int, int, int]:
        """Latent frames, rows and columns."""
        vae = self.model.vae
        frames = (self.num_frames - 1) // vae.temporal_scale + 1
        return frames, self.height // vae.spatial_scale, self.width // vae.spatial_scale

    @property
    def tokens(self) -> int:
        """DiT tokens of the whole clip, S."""
        frames, rows, columns = self.latent
        time, height, width = self.model.dit.patch
        return (frames // time) * (rows // height) * (columns // width)

    @property
    def encoded_frames(self) -> int:
        """Pixel frames that the VAE encodes: one image, or the clip that it opens."""
        if not self.image:
            return 0
        return self.num_frames if self.model.image_condition else 1

    @property
    def output_values(self) -> int:
        """Colour values of the finished clip."""
        return 3 * self.num_frames * self.height * self.width

    def rank_branches(self, cfg: int) -> int:
        """Guidance branches that one rank predicts: all in turn, or one where ``cfg`` ranks share them."""
        return self.branches if cfg == 1 else 1

    def rank_forwards(self, cfg: int) -> int:
        """DiT forwards of the request on one rank."""
        return self.steps * self.rank_branches(cfg)
