"""Softmax attention: in plain operations, as a kernel of one rank, and as a ring of ranks."""

from omni_neuron.kernels.attention.explicit import explicit_attention

__all__ = ["explicit_attention"]
