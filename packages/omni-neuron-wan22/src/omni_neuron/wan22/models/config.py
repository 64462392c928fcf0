"""Configuration of the Wan diffusion transformer, as diffusers writes it to ``transformer/config.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.config_file import REMEDY, ConfigFile

TEXT_LENGTH = 512
"""Tokens of a prompt, padded or cut, that every Wan model was trained with."""

NUM_TRAIN_TIMESTEPS = 1000
"""Noise levels that every Wan model was trained with."""


@dataclass(frozen=True)
class WanConfig(ConfigFile):
    """Geometry of the transformer; names and defaults are those of diffusers' ``WanTransformer3DModel``.

    ``in_channels`` counts latent and condition channels (16 for text-to-video, 36 for image-to-video,
    48 for the 5B model). ``image_dim`` and ``added_kv_proj_dim`` switch on the CLIP image branch of
    Wan2.1, ``pos_embed_seq_len`` its first-and-last-frame form. ``patch_size`` and ``rope_max_seq_len``
    count latent positions per axis, in the order time, height, width.

    Raises:
        InputError: a field is out of range, contradicts another one, or needs a part that Wan never had.
    """

    component = "transformer"
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "patch_size": (1, 64),
        "num_attention_heads": (1, 1024),
        "attention_head_dim": (6, 1024),  # one rotated pair per axis at least
        "num_layers": (1, 1024),
        "eps": (1e-20, 1),
    }

    patch_size: tuple[int, int, int] = (1, 2, 2)
    num_attention_heads: int = 40
    attention_head_dim: int = 128
    in_channels: int = 16
    out_channels: int = 16
    text_dim: int = 4096
    freq_dim: int = 256
    ffn_dim: int = 13824
    num_layers: int = 40
    cross_attn_norm: bool = True
    qk_norm: str = "rms_norm_across_heads"
    eps: float = 1e-6
    image_dim: int | None = None
    added_kv_proj_dim: int | None = None
    rope_max_seq_len: int = 1024
    pos_embed_seq_len: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.qk_norm != "rms_norm_across_heads":
            raise InputError(
                f"transformer config qk_norm={self.qk_norm!r} must be 'rms_norm_across_heads', "
                f"the only one that Wan models use; {REMEDY}"
            )
        if len(self.patch_size) != 3:
            raise InputError(
                f"transformer config patch_size={list(self.patch_size)} must have three entries; {REMEDY}"
            )
        for name in ("attention_head_dim", "freq_dim"):
            if getattr(self, name) % 2:
                raise InputError(
                    f"transformer config {name}={getattr(self, name)} must be even, its entries are used in "
                    f"pairs; {REMEDY}"
                )
        if self.pos_embed_seq_len is not None and self.image_dim is None:
            raise InputError(
                f"transformer config pos_embed_seq_len={self.pos_embed_seq_len} needs image_dim; {REMEDY}"
            )
        if (self.image_dim is None) != (self.added_kv_proj_dim is None):
            raise InputError(
                f"transformer config image_dim={self.image_dim} and added_kv_proj_dim="
                f"{self.added_kv_proj_dim} must be given together; {REMEDY}"
            )
        if self.added_kv_proj_dim not in (None, self.inner_dim):
            raise InputError(
                f"transformer config added_kv_proj_dim={self.added_kv_proj_dim} must equal the inner "
                f"dimension {self.inner_dim}, to which image tokens are embedded; {REMEDY}"
            )

    @property
    def inner_dim(self) -> int:
        """Width d of the token stream."""
        return self.num_attention_heads * self.attention_head_dim

    @property
    def patch_volume(self) -> int:
        """Latent positions in one token."""
        return math.prod(self.patch_size)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """As `ConfigFile.from_dict`. ``out_channels`` and ``qk_norm`` may be null.

        The first then equals ``in_channels``, the second has its one value.
        """
        chosen = dict(values)
        if chosen.get("out_channels", 0) is None:
            chosen["out_channels"] = chosen.get("in_channels", cls.in_channels)
        if chosen.get("qk_norm", "") is None:
            del chosen["qk_norm"]
        return super().from_dict(chosen)
