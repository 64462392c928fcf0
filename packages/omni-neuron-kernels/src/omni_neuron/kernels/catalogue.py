"""All kernels, by name."""

from omni_neuron.kernels.rms_norm.spec import RMS_NORM
from omni_neuron.kernels.spec import KernelSpec

KERNELS: dict[str, KernelSpec] = {spec.name: spec for spec in (RMS_NORM,)}
