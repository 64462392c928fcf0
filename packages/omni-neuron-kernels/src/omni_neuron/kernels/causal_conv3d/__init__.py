"""Causal 3-D convolution of the Wan VAE."""

from omni_neuron.kernels.causal_conv3d.operator import causal_conv3d
from omni_neuron.kernels.causal_conv3d.twin import pack_weight

__all__ = ["causal_conv3d", "pack_weight"]
