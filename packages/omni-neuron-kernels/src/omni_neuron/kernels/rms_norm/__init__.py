"""RMSNorm over the last dimension."""

from omni_neuron.kernels.rms_norm.operator import rms_norm

__all__ = ["rms_norm"]
