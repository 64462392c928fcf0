"""A Neuron machine made of CPU: an interpreter of NKI kernels, and the published numbers of the machines."""

from omni_neuron.sim.cost.profile import Profile, profile
from omni_neuron.sim.errors import KernelError, KernelWarning
from omni_neuron.sim.execution.launch import PerRank, simulate
from omni_neuron.sim.install import install

__all__ = ["KernelError", "KernelWarning", "PerRank", "Profile", "install", "profile", "simulate"]
