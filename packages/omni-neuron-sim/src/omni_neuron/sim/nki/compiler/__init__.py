"""`nki.compiler`: there is none here, only names that kernels' files import beside their kernels."""

from omni_neuron.sim.nki.compiler import kernel_builder

__all__ = ["kernel_builder"]
