"""Sizes of a random checkpoint."""

from dataclasses import dataclass

from omni_neuron.runtime.errors import InputError

VAE_WIDTHS = (1, 2, 4, 4)  # multiples of vae_base_dim, from the pixels to the latents
VAE_RES_BLOCKS = 2
VAE_TEMPORAL = (False, True, True)  # which of the three halvings also halves time
LATENT_CHANNELS = 16
FREQ_DIM = 256
PATCH_SIZE = (1, 2, 2)
RELATIVE_BUCKETS = 32


@dataclass(frozen=True)
class TinyGeometry:
    """What :func:`omni_neuron.wan22.checkpoint.tiny.tiny_checkpoint` builds; the defaults take a few MB.

    Attributes:
        num_attention_heads, attention_head_dim, num_layers, ffn_dim: of each transformer expert.
        text_dim, text_heads, text_layers, text_ffn_dim: of the text encoder; heads split ``text_dim`` evenly.
        vae_base_dim: channels of the VAE at full resolution.
        two_experts: whether there is a ``transformer_2`` and a boundary.
        boundary_ratio: noise level at which the second expert takes over, in 0..1.
        seed: of every weight.
    """

    num_attention_heads: int = 4
    attention_head_dim: int = 24
    num_layers: int = 2
    ffn_dim: int = 256
    text_dim: int = 64
    text_heads: int = 4
    text_layers: int = 2
    text_ffn_dim: int = 128
    vae_base_dim: int = 8
    two_experts: bool = True
    boundary_ratio: float = 0.875
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name not in ("seed", "two_experts", "boundary_ratio") and value < 1:
                raise InputError(f"{name} is {value}, but a size must be at least 1.")
        if self.attention_head_dim % 2 or self.attention_head_dim < 6:
            raise InputError(
                f"attention_head_dim is {self.attention_head_dim}, but it must be even and at least 6, "
                "a rotated pair for each axis."
            )
        if self.text_dim % self.text_heads:
            raise InputError(f"text_dim is {self.text_dim}, but text_heads {self.text_heads} must divide it.")
        if not 0 <= self.boundary_ratio <= 1:
            raise InputError(f"boundary_ratio is {self.boundary_ratio}, but it must lie in 0..1.")

    @property
    def dim(self) -> int:
        """Width of the transformer."""
        return self.num_attention_heads * self.attention_head_dim
