"""`nki.simulator`: the call with which torch integrations start a kernel in the simulator.

Beyond what NKI has there, `simulate` and `profile` launch on many ranks, with `PerRank` arguments: whoever
found this interpreter through its entry point need not know its package.
"""

from collections.abc import Callable, Sequence
from typing import Any

from omni_neuron.sim.cost.profile import profile
from omni_neuron.sim.execution.launch import PerRank, launch, simulate
from omni_neuron.sim.nki.kernel import Kernel

__all__ = ["PerRank", "profile", "simulate", "simulate_kernel"]


def simulate_kernel(
    func: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None, lnc: int = 1
) -> Any:
    """Run a kernel on the cores of one logical core."""
    return launch(Kernel(getattr(func, "function", func), lnc), tuple(args), dict(kwargs or {})).results[0]
