"""Tensors of a UMT5 encoder, under transformers' names."""

from omni_neuron.wan22.checkpoint.recipes.geometry import RELATIVE_BUCKETS, TinyGeometry
from omni_neuron.wan22.checkpoint.recipes.values import Recipe, bias, norm, weight


def text_encoder_recipes(geometry: TinyGeometry, vocab_size: int) -> dict[str, Recipe]:
    """Every tensor of ``UMT5EncoderModel``; the tied embedding is stored once, as published files do.

    UMT5 does not divide its scores by the square root of the head's width, so queries and keys are small.
    """
    dim, ffn_dim = geometry.text_dim, geometry.text_ffn_dim
    query_gain = (dim // geometry.text_heads) ** -0.25
    recipes = {
        "shared.weight": bias(vocab_size, dim, spread=1.0),
        "encoder.final_layer_norm.weight": norm(dim),
    }
    for index in range(geometry.text_layers):
        attention, feed_forward = f"encoder.block.{index}.layer.0", f"encoder.block.{index}.layer.1"
        recipes |= {
            f"{attention}.SelfAttention.q.weight": weight(dim, dim, gain=query_gain),
            f"{attention}.SelfAttention.k.weight": weight(dim, dim, gain=query_gain),
            f"{attention}.SelfAttention.v.weight": weight(dim, dim),
            f"{attention}.SelfAttention.o.weight": weight(dim, dim),
            f"{attention}.SelfAttention.relative_attention_bias.weight": bias(
                RELATIVE_BUCKETS, geometry.text_heads, spread=1.0
            ),
            f"{attention}.layer_norm.weight": norm(dim),
            f"{feed_forward}.DenseReluDense.wi_0.weight": weight(ffn_dim, dim),
            f"{feed_forward}.DenseReluDense.wi_1.weight": weight(ffn_dim, dim),
            f"{feed_forward}.DenseReluDense.wo.weight": weight(dim, ffn_dim),
            f"{feed_forward}.layer_norm.weight": norm(dim),
        }
    return recipes
