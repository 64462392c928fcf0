"""Parameter counts, and how many of them one rank keeps."""

from __future__ import annotations

from omni_neuron.distributed.planner.geometry import VAE, DiT, TextEncoder
from omni_neuron.distributed.planner.vae_layers import decoder_layers, encoder_layers


def block_matrices(dit: DiT) -> int:
    """Matrices and biases of one block that tensor parallelism cuts: two attentions and the feed-forward.

    Biases of row-parallel layers are not cut; their size does not show in any figure of ours.
    """
    d, f = dit.width, dit.ffn
    return 8 * d * d + 8 * d + 2 * d * f + f + d


def block_vectors(dit: DiT) -> int:
    """The rest of one block: four query-key norms, the affine norm and the modulation table."""
    return 4 * dit.width + 2 * dit.width + 6 * dit.width


def dit_outside(dit: DiT) -> int:
    """Parameters outside the blocks, which every rank keeps whole."""
    d = dit.width
    voxels = dit.patch[0] * dit.patch[1] * dit.patch[2]
    patch = d * dit.in_channels * voxels + d
    time = d * dit.freq_dim + d + d * d + d + 6 * d * d + 6 * d
    text = d * dit.text_dim + d + d * d + d
    out = dit.out_channels * voxels * (d + 1) + 2 * d
    return patch + time + text + out


def dit_parameters(dit: DiT) -> int:
    """All parameters of one expert."""
    return dit.layers * (block_matrices(dit) + block_vectors(dit)) + dit_outside(dit)


def dit_parameters_per_rank(dit: DiT, tp: int) -> float:
    """Parameters of one expert that one of ``tp`` ranks keeps."""
    blocks = dit.layers * (block_matrices(dit) / tp + block_vectors(dit))
    return blocks + dit_outside(dit)


def text_encoder_layer(text: TextEncoder) -> int:
    """Matrices of one encoder layer: four attention projections and three of the gated feed-forward."""
    return 4 * text.width * text.heads * text.head_dim + 3 * text.width * text.ffn


def text_encoder_parameters(text: TextEncoder) -> int:
    """All parameters of the encoder, embedding table included."""
    layer = text_encoder_layer(text) + text.buckets * text.heads + 2 * text.width
    return text.layers * layer + text.vocabulary * text.width + text.width


def vae_parameters(vae: VAE) -> tuple[int, int]:
    """Parameters of the encoder and of the decoder, each with its 1x1 convolution at the latent."""
    encoder = sum(layer.parameters for layer in encoder_layers(vae)) + (2 * vae.z_dim) ** 2 + 2 * vae.z_dim
    decoder = sum(layer.parameters for layer in decoder_layers(vae)) + vae.z_dim**2 + vae.z_dim
    return encoder, decoder
