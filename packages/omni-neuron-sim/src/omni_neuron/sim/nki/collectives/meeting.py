"""How ranks meet: every core of every member brings its tensors, one exchange per rank happens, all go on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import current_core, entered
from omni_neuron.sim.execution.world import Member
from omni_neuron.sim.memory.access import Content, read, write
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.enums import Engine
from omni_neuron.sim.nki.isa.instruction import Work
from omni_neuron.sim.nki.isa.operands import warn
from omni_neuron.sim.numerics.formats import Array, encode

Exchange = Callable[[dict[int, list[Content]]], dict[int, list[Content]]]


@dataclass
class Call:
    """One rank's part in a collective."""

    opcode: str
    settings: tuple[Any, ...]  # must be equal on every rank: the operation, the dimension, the groups
    sources: tuple[NkiTensor, ...]
    destinations: tuple[NkiTensor, ...]
    shapes: tuple[Any, ...]
    contents: list[Content]


def tensors(argument: str, value: Any) -> tuple[NkiTensor, ...]:
    """One tensor or a sequence of them."""
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    for tensor in found:
        if not isinstance(tensor, NkiTensor):
            raise KernelError(
                "collective", f"{argument} holds a {type(tensor).__name__}, and must hold tensors."
            )
    return found


def in_hbm(argument: str, values: Sequence[NkiTensor], sbuf_too: bool = False) -> None:
    """Collectives move internal tensors of shared HBM, never arguments or results; some also move SBUF."""
    for tensor in values:
        if sbuf_too and tensor.buffer is MemorySpace.sbuf:
            continue
        if tensor.buffer is not MemorySpace.shared_hbm:
            legal = "shared_hbm or sbuf" if sbuf_too else "shared_hbm"
            raise KernelError("collective", f"{argument} = {tensor!r} must be in {legal}.")
        if tensor.buffer_.argument:
            raise KernelError(
                "collective",
                f"{argument} = {tensor!r} is an argument of the kernel: "
                "stage it in an internal tensor first.",
            )
        if not tensor.buffer_.allocation.named:
            warn(f"{argument} = {tensor!r} has no name, which the compiler wants of a collective's tensors")
        tensor.buffer_.exchanged = True


def exchange(
    opcode: str,
    settings: tuple[Any, ...],
    group: tuple[int, ...],
    sources: tuple[NkiTensor, ...],
    destinations: tuple[NkiTensor, ...],
    act: Exchange,
    contents: list[Content] | None = None,
) -> Work:
    """Meet the other ranks of `group`, and write what `act` makes of everybody's sources (or `contents`)."""
    core = current_core()
    _same_spaces(sources, destinations)
    contents = contents or [Content(c.values.copy(), c.undefined) for c in map(read, sources)]
    shapes = tuple((t.shape, str(t.dtype)) for t in (*sources, *destinations))
    call = Call(opcode, settings, sources, destinations, shapes, contents)
    members = tuple((rank, core_id) for rank in group for core_id in range(core.lnc))
    key = ("group", group)
    what = f"ncc.{opcode} of group {group}"
    result = core.world.meet(core, key, members, what, call, lambda calls: _run(calls, act))
    for destination, content in zip(destinations, result, strict=True):
        if destination.buffer is not MemorySpace.shared_hbm:
            _deliver(destination, content)
    return Work(Engine.gpsimd, destinations, sources, meeting=(key, members))


def _same_spaces(sources: tuple[NkiTensor, ...], destinations: tuple[NkiTensor, ...]) -> None:
    if len(sources) != len(destinations) or not sources:
        raise KernelError(
            "collective", f"{len(sources)} sources and {len(destinations)} destinations: one for each."
        )
    for source, destination in zip(sources, destinations, strict=True):
        if source.on_chip != destination.on_chip:
            raise KernelError("collective", f"{source!r} and {destination!r}: all in HBM, or all in SBUF.")
        if source.dtype is not destination.dtype:
            raise KernelError("dtype", f"{source!r} and {destination!r} must have one dtype.")


def _run(calls: dict[Member, Call], act: Exchange) -> dict[Member, Any]:
    first = next(iter(calls.values()))
    for (rank, core_id), call in calls.items():
        if call.opcode != first.opcode:
            raise KernelError(
                "collective",
                f"mismatch: rank {rank} core {core_id} is in ncc.{call.opcode}, another in "
                f"ncc.{first.opcode}.",
            )
        if call.settings != first.settings or call.shapes != first.shapes:
            raise KernelError(
                "collective",
                f"mismatch in ncc.{call.opcode}: rank {rank} core {core_id} passes {call.settings} "
                f"{call.shapes}, "
                f"another {first.settings} {first.shapes}.",
            )
    for (rank, core_id), call in calls.items():
        mine = calls[(rank, 0)].sources
        if core_id and any(
            a.buffer is MemorySpace.shared_hbm and a.buffer_ is not b.buffer_
            for a, b in zip(mine, call.sources, strict=True)
        ):
            raise KernelError(
                "lnc-divergence", f"the cores of rank {rank} give ncc.{call.opcode} different tensors."
            )
    results = act({rank: call.contents for (rank, core_id), call in calls.items() if core_id == 0})
    for (rank, core_id), call in calls.items():
        if core_id == 0:
            with entered(current_core().world.members[(rank, 0)]):
                _deliver_shared(call.destinations, results[rank])
    return {(rank, core_id): results[rank] for rank, core_id in calls}


def _deliver_shared(destinations: tuple[NkiTensor, ...], contents: list[Content]) -> None:
    """What both cores of a rank see is written once, as of before they go on."""
    for destination, content in zip(destinations, contents, strict=True):
        if destination.buffer is MemorySpace.shared_hbm:
            _deliver(destination, content)


def _deliver(destination: NkiTensor, content: Content) -> None:
    if content.values.size != destination.size:
        raise KernelError(
            "shape",
            f"{destination!r} has {destination.size} elements, and the collective brings "
            f"{content.values.size}.",
        )
    write(destination, content.values.reshape(destination.shape), content.undefined, synchronised=True)


def rounded(values: Array, like: NkiTensor) -> Array:
    """fp32 results in the storage of a tensor."""
    return encode(values.astype(np.float32), like.dtype, like.buffer_.precise)
