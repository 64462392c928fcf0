"""`nki.jit`: a function that runs on the machine when it is called from outside, and inline from inside."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from omni_neuron.sim.execution.core import running
from omni_neuron.sim.execution.launch import launch


class Kernel:
    """A kernel: `kernel(...)` runs on one core, `kernel[2](...)` on the two cores of a logical core."""

    def __init__(self, function: Callable[..., Any], grid: int | None = None) -> None:
        functools.update_wrapper(self, function)
        self.function = self.func = function
        self.grid = grid

    def __getitem__(self, grid: Any) -> "Kernel":
        size = grid[0] if isinstance(grid, tuple) and len(grid) == 1 else grid
        if size not in (1, 2) or isinstance(size, bool):
            raise ValueError(f"The grid is {grid!r}: one number, the cores per logical core, 1 or 2.")
        return Kernel(self.function, int(size))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if running():
            return self.function(*args, **kwargs)
        return launch(self, args, kwargs).results[0]

    def with_schedule(self, schedule: Sequence[Any]) -> "Kernel":
        """A scheduling hint, which changes no result."""
        return self

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorate a kernel. Old options such as `mode` and `platform_target` mean nothing since NKI 0.3."""
    unknown = set(options) - {
        "mode",
        "platform_target",
        "debug_kernel",
        "show_compiler_tb",
        "experimental_flags",
    }
    if unknown:
        raise TypeError(f"nki.jit has no option {', '.join(sorted(unknown))}.")
    if function is None:
        return jit
    return function if isinstance(function, Kernel) else Kernel(function)


def simulate(kernel: Kernel | Callable[..., Any]) -> Callable[..., Any]:
    """`nki.simulate(kernel)(...)`, `nki.simulate(kernel[2])(...)`: run in the simulator."""
    return kernel if isinstance(kernel, Kernel) else Kernel(kernel)
