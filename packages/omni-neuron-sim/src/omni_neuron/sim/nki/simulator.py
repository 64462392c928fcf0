"""`nki.simulator`: the call with which torch integrations start a kernel in the simulator."""

from collections.abc import Callable, Sequence
from typing import Any

from omni_neuron.sim.execution.launch import launch
from omni_neuron.sim.nki.kernel import Kernel


def simulate_kernel(
    func: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None, lnc: int = 1
) -> Any:
    """Run a kernel on the cores of one logical core."""
    return launch(Kernel(getattr(func, "function", func), lnc), tuple(args), dict(kwargs or {})).results[0]
