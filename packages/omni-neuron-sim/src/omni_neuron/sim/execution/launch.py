"""Launching a kernel on simulated cores."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from omni_neuron.sim import envs
from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import Core, entered
from omni_neuron.sim.execution.host import (
    check_defined,
    copy_back,
    framework,
    is_array,
    place_argument,
    result,
)
from omni_neuron.sim.execution.kernel_object import NKIObject
from omni_neuron.sim.execution.world import World
from omni_neuron.sim.machine import CHIPS
from omni_neuron.sim.memory.placement import Peak, check_capacity
from omni_neuron.sim.memory.tensor import NkiTensor

if TYPE_CHECKING:
    from omni_neuron.sim.cost.trace import Trace


class PerRank:
    """An argument that differs between ranks: one value for each, in rank order."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)


@dataclass
class Run:
    """A finished launch: results of each rank, and what each core used."""

    results: list[Any]
    sbuf: list[Peak]
    psum: list[Peak]
    traces: "list[Trace]"
    cores: list[Core]


def simulate(
    kernel: Any,
    *args: Any,
    lnc: int | None = None,
    ranks: int = 1,
    target: str | None = None,
    precise: bool | None = None,
    seed: int = 0,
    time_limit_s: float = 600.0,
    allow_undefined: bool = False,
    stochastic_rounding: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Run a kernel and return what it returns, as arrays of the caller's framework.

    Args:
        kernel: a function decorated with `nki.jit`, or the plain function.
        args, kwargs: its arguments; numpy, torch or jax arrays become tensors in HBM, `PerRank` gives each
            rank its own.
        lnc: physical cores per logical core, 1 or 2; by default the grid of the kernel (`kernel[2]`), then 1.
        ranks: logical cores that run the kernel together; with more than one the result is a list, one per
            rank.
        target: trn1, trn2 or trn3; by default `NEURON_PLATFORM_TARGET_OVERRIDE`, then trn2.
        precise: round to the stored dtypes (True) or keep narrow floats in fp32; by default
            `NKI_PRECISE_FP`, then True.
        seed: of the random instructions, and of stochastic rounding.
        time_limit_s: how long the ranks may take.
        allow_undefined: return what the kernel left undefined as poison (NaN, -1) instead of refusing it.
        stochastic_rounding: engines round results of 8 and 16 bits up or down by chance, right on average; by
            default `NEURON_RT_STOCHASTIC_ROUNDING_EN`, then False.

    Arrays that the kernel writes into are updated in place. Raises KernelError where the kernel breaks a
    rule of the machine, ValueError for an impossible launch, TimeoutError after the time limit.
    """
    run = launch(
        kernel, args, kwargs, lnc, ranks, target, precise, seed, time_limit_s,
        allow_undefined=allow_undefined, stochastic_rounding=stochastic_rounding,
    )  # fmt: skip
    return run.results if ranks > 1 else run.results[0]


def launch(
    kernel: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    lnc: int | None = None,
    ranks: int = 1,
    target: str | None = None,
    precise: bool | None = None,
    seed: int = 0,
    time_limit_s: float = 600.0,
    traced: bool = False,
    allow_undefined: bool = False,
    stochastic_rounding: bool | None = None,
) -> Run:
    """`simulate` with everything that is known afterwards."""
    generation = envs.target() if target is None else envs.as_target(target)
    outer = getattr(kernel, "grid", None)
    kernel, args, kwargs = _unbound(kernel, args, kwargs)
    lnc = _grid(kernel, lnc or outer)
    if lnc not in CHIPS[generation].logical_core_sizes:
        raise ValueError(f"lnc is {lnc}: {generation} has {CHIPS[generation].logical_core_sizes}.")
    if ranks < 1:
        raise ValueError(f"ranks is {ranks}: at least 1.")
    with_grid = lnc > 1 or bool(outer or getattr(kernel, "grid", None))
    rounding = envs.precise() if precise is None else precise
    by_chance = envs.stochastic_rounding() if stochastic_rounding is None else stochastic_rounding
    world = World(generation, lnc, ranks, rounding, with_grid, seed, time_limit_s, by_chance)
    cores = [
        Core(world, rank, core, _trace(traced, rank, core)) for rank in range(ranks) for core in range(lnc)
    ]
    function = getattr(kernel, "function", kernel)
    kind = framework([leaf for a in (*args, *kwargs.values()) for leaf in _leaves(a)])

    placed: dict[Core, list[tuple[Any, NkiTensor]]] = {core: [] for core in cores}
    positional = {c: [_argument(c, f"arg{i}", a, placed[c]) for i, a in enumerate(args)] for c in cores}
    named = {c: {name: _argument(c, name, a, placed[c]) for name, a in kwargs.items()} for c in cores}
    outcomes = world.run(cores, lambda core: function(*positional[core], **named[core]))
    peaks = [check_capacity(core.allocations, core.chip.core.memory) for core in cores]
    results = []
    for core, value in zip(cores, outcomes, strict=True):
        if core.core_id == 0:
            results.append(_finish(core, value, placed[core], kind, not allow_undefined))
    return Run(
        results, [p[0] for p in peaks], [p[1] for p in peaks], [c.trace for c in cores if c.trace], cores
    )


def _grid(kernel: Any, lnc: int | None) -> int:
    grid: int | None = getattr(kernel, "grid", None)
    if grid is not None and lnc is not None and grid != lnc:
        raise ValueError(f"lnc is {lnc} and the kernel's grid {grid}: they must agree.")
    return grid or lnc or 1


def _unbound(kernel: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """A kernel of functools.partial with the arguments that it binds as arguments of the call."""
    inner = getattr(kernel, "function", kernel)
    if not isinstance(inner, partial):
        return kernel, args, kwargs
    return _unbound(inner.func, (*inner.args, *args), {**inner.keywords, **kwargs})


def _leaves(value: Any) -> list[Any]:
    """Everything within an argument."""
    if isinstance(value, PerRank):
        inner: Sequence[Any] = value.values
    elif isinstance(value, NKIObject):
        inner = list(getattr(value, "__dict__", {}).values())
    elif isinstance(value, list | tuple):
        inner = value
    elif isinstance(value, dict):
        inner = list(value.values())
    else:
        return [value]
    return [leaf for one in inner for leaf in _leaves(one)]


def _trace(traced: bool, rank: int, core: int) -> "Trace | None":
    if not traced:
        return None
    from omni_neuron.sim.cost.trace import Trace

    return Trace(rank, core)


def _finish(core: Core, value: Any, placed: list[tuple[Any, NkiTensor]], kind: str, defined: bool) -> Any:
    lnc, core.lnc = core.lnc, 1  # the cores are done: no race is possible any more
    try:
        with entered(core):
            returned = result(value, kind)
            if defined:
                check_defined(value, core)
            for original, tensor in placed:
                if tensor.buffer_.written:
                    if defined:
                        check_defined(tensor, core)
                    copy_back(original, tensor)
            return returned
    finally:
        core.lnc = lnc


def _argument(core: Core, name: str, value: Any, placed: list[tuple[Any, NkiTensor]]) -> Any:
    """A kernel's argument: arrays become tensors, tuples are searched, everything else is a constant."""
    if isinstance(value, PerRank):
        if len(value.values) != core.world.ranks:
            raise KernelError(
                "arguments", f"{name} has {len(value.values)} values for {core.world.ranks} ranks."
            )
        value = value.values[core.rank]
    if is_array(value):
        tensor = place_argument(core, name, value)
        placed.append((value, tensor))
        return tensor
    if isinstance(value, list):
        raise KernelError("arguments", f"{name} is a list, which kernels do not take: pass a tuple.")
    if isinstance(value, dict) and any(map(is_array, _leaves(value))):
        raise KernelError("arguments", f"{name} is a dict with arrays in it: pass an nl.NKIObject.")
    if isinstance(value, NKIObject):
        return _object(core, name, value, placed)
    if isinstance(value, tuple):
        parts = [_argument(core, f"{name}_{i}", v, placed) for i, v in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value.item() if isinstance(value, np.generic) else value


def _object(core: Core, name: str, value: NKIObject, placed: list[tuple[Any, NkiTensor]]) -> NKIObject:
    """The object with its arrays as tensors; one without arrays is passed as it is."""
    if not any(map(is_array, _leaves(value))):
        return value
    made = copy(value)
    for field, inner in vars(value).items():
        object.__setattr__(made, field, _field(core, f"{name}.{field}", inner, placed))
    return made


def _field(core: Core, name: str, value: Any, placed: list[tuple[Any, NkiTensor]]) -> Any:
    """A field of an object, which unlike an argument may be a list or a dict."""
    if isinstance(value, list):
        return [_field(core, f"{name}_{i}", v, placed) for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {key: _field(core, f"{name}_{key}", v, placed) for key, v in value.items()}
    return _argument(core, name, value, placed)
