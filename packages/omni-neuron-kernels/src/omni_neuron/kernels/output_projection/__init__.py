"""The attention's output projection."""

from omni_neuron.kernels.output_projection.operator import output_projection

__all__ = ["output_projection"]
