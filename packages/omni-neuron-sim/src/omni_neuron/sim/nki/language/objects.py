"""Small things of the language: objects, ranges, program ids, loops at run time, printing."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import current_core
from omni_neuron.sim.memory.access import read, scalar_value
from omni_neuron.sim.memory.indexing import DynSlice
from omni_neuron.sim.memory.registers import VirtualRegister
from omni_neuron.sim.memory.tensor import NkiTensor

MOST_ITERATIONS = 1 << 22


def ds(start: Any, size: int) -> DynSlice:
    """`size` elements from `start` on."""
    return DynSlice(start, size)


def _range(*bounds: Any, **_: Any) -> range:
    """The loop over a range that is unrolled while a kernel is traced."""
    if any(isinstance(b, VirtualRegister) for b in bounds):
        raise KernelError(
            "register", "a range is unrolled while tracing: loop over registers with nl.fori_loop."
        )
    return range(*bounds)


affine_range = sequential_range = static_range = _range


def program_id(axis: int = 0) -> int:
    """Which core of the logical core this is."""
    _first_axis(axis)
    return current_core().core_id


def num_programs(axes: int = 0) -> int:
    """How many cores the logical core has."""
    _first_axis(axes)
    return current_core().lnc


def program_ndim() -> int:
    """0 for a launch without a grid, 1 with one."""
    return 1 if current_core().world.grid else 0


def _first_axis(axis: int) -> None:
    if axis != 0:
        raise KernelError("language", f"axis = {axis}: a grid has one axis, 0.")


def fori_loop(lower: Any, upper: Any, body: Callable[[VirtualRegister], Any], step: int = 1) -> None:
    """Call body(register) for lower, lower + step, ... below upper; bounds are ints or registers."""
    if step < 1:
        raise KernelError("language", f"step = {step}: a run-time loop counts up.")
    start, stop = (scalar_value(b) if isinstance(b, VirtualRegister) else int(b) for b in (lower, upper))
    for i in range(start, stop, step):
        body(VirtualRegister(i, read_only=True))


def dynamic_range(start: Any, stop: Any = None, step: int = 1) -> Iterator[VirtualRegister]:
    """The older form of a run-time loop."""
    lower, upper = (0, start) if stop is None else (start, stop)
    begin, end = (scalar_value(b) if isinstance(b, VirtualRegister) else int(b) for b in (lower, upper))
    for i in range(begin, end, int(step)):
        yield VirtualRegister(i, read_only=True)


def while_loop(init_reg: VirtualRegister, body: Callable[..., VirtualRegister]) -> None:
    """Call body, which returns the next condition, as long as the condition is not zero."""
    if not isinstance(init_reg, VirtualRegister):
        raise KernelError("register", f"init_reg is a {type(init_reg).__name__}, and must be a register.")
    takes_register = len(inspect.signature(body).parameters) > 0
    condition = init_reg
    for _ in range(MOST_ITERATIONS):
        if not condition:
            return
        condition = body(condition) if takes_register else body()
        if not isinstance(condition, VirtualRegister):
            raise KernelError(
                "register", "the body of nl.while_loop returns the register of the next condition."
            )
    raise KernelError("language", f"nl.while_loop did not end within {MOST_ITERATIONS} iterations.")


@contextmanager
def no_reorder() -> Iterator[None]:
    """A hint to the scheduler; the simulator keeps program order anyway."""
    yield


def device_print(prefix: str, value: Any = None, *more: Any) -> None:
    """Print tensors as they are now."""
    core = current_core()
    shown = [
        str(read(v).values) if isinstance(v, NkiTensor) else str(v) for v in (value, *more) if v is not None
    ]
    print(f"[{core}] {prefix}", *shown)
