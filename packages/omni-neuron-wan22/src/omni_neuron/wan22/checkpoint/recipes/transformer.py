"""Tensors of a Wan transformer expert, under diffusers' names."""

import math

from omni_neuron.wan22.checkpoint.recipes.geometry import FREQ_DIM, LATENT_CHANNELS, PATCH_SIZE, TinyGeometry
from omni_neuron.wan22.checkpoint.recipes.values import Recipe, bias, convolution, linear, norm


def transformer_recipes(geometry: TinyGeometry) -> dict[str, Recipe]:
    """Every tensor of ``WanTransformer3DModel``.

    Attention norms lie around 1.5, which makes attention sharp enough for positions and words to matter.
    """
    dim = geometry.dim
    recipes = {
        "scale_shift_table": bias(1, 2, dim),
        **convolution("patch_embedding", dim, LATENT_CHANNELS, *PATCH_SIZE),
        **linear("condition_embedder.time_embedder.linear_1", dim, FREQ_DIM),
        **linear("condition_embedder.time_embedder.linear_2", dim, dim),
        **linear("condition_embedder.time_proj", 6 * dim, dim),
        **linear("condition_embedder.text_embedder.linear_1", dim, geometry.text_dim, gain=1.5),
        **linear("condition_embedder.text_embedder.linear_2", dim, dim, gain=1.5),
        **linear("proj_out", LATENT_CHANNELS * math.prod(PATCH_SIZE), dim),
    }
    for index in range(geometry.num_layers):
        block = f"blocks.{index}"
        recipes |= {
            f"{block}.scale_shift_table": bias(1, 6, dim, spread=0.4),
            **_attention(f"{block}.attn1", dim),
            **_attention(f"{block}.attn2", dim),
            f"{block}.norm2.weight": norm(dim),
            f"{block}.norm2.bias": bias(dim),
            **linear(f"{block}.ffn.net.0.proj", geometry.ffn_dim, dim),
            **linear(f"{block}.ffn.net.2", dim, geometry.ffn_dim),
        }
    return recipes


def _attention(name: str, dim: int) -> dict[str, Recipe]:
    return {
        **linear(f"{name}.to_q", dim, dim),
        **linear(f"{name}.to_k", dim, dim),
        **linear(f"{name}.to_v", dim, dim),
        **linear(f"{name}.to_out.0", dim, dim),
        f"{name}.norm_q.weight": norm(dim, center=1.5),
        f"{name}.norm_k.weight": norm(dim, center=1.5),
    }
