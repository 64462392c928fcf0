"""Python that runs in a simulator and does not compile as a kernel."""

from omni_neuron.sim.lint.check import check, lint
from omni_neuron.sim.lint.grammar import Finding

__all__ = ["Finding", "check", "lint"]
