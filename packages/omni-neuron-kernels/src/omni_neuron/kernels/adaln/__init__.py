"""Layer norm with modulation by time (adaLN), with and without the residual sum before it."""

from omni_neuron.kernels.adaln.operator import adaln, residual_adaln

__all__ = ["adaln", "residual_adaln"]
