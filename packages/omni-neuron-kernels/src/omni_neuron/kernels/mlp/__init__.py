"""The MLP of a transformer block."""

from omni_neuron.kernels.mlp.operator import mlp

__all__ = ["mlp"]
