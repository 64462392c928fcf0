"""Softmax attention: in plain operations, as a kernel of one rank, and as a ring of ranks."""

from omni_neuron.kernels.attention.explicit import explicit_attention
from omni_neuron.kernels.attention.flash_operator import flash_attention
from omni_neuron.kernels.attention.ring_operator import ring_attention
from omni_neuron.kernels.attention.token_major import token_major_attention, token_major_ring_attention

__all__ = [
    "explicit_attention",
    "flash_attention",
    "ring_attention",
    "token_major_attention",
    "token_major_ring_attention",
]
