"""The collectives. Reductions run in fp32 in the order of the group, with one rounding at the end."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import current_core
from omni_neuron.sim.memory.access import Content, read
from omni_neuron.sim.memory.registers import VirtualRegister
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.collectives.groups import as_group, own_group
from omni_neuron.sim.nki.collectives.meeting import exchange, in_hbm, rounded, tensors
from omni_neuron.sim.nki.isa.arithmetic import reduction
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.operands import merge
from omni_neuron.sim.nki.isa.rules import needs_generation
from omni_neuron.sim.numerics.alu import ARITHMETIC
from omni_neuron.sim.numerics.formats import Array, to_float32

REDUCES = ("add", "minimum", "maximum")


def _start(priority: int | None) -> None:
    if priority is not None:
        needs_generation(4, "priority")


def _joined(parts: list[Content], axis: int) -> Content:
    values = np.concatenate([p.values for p in parts], axis=axis)
    if all(p.undefined is None for p in parts):
        return Content(values)
    codes = [np.zeros(p.values.shape, np.uint8) if p.undefined is None else p.undefined for p in parts]
    return Content(values, np.concatenate(codes, axis=axis))


def _piece(content: Content, index: int, count: int) -> Content:
    size = content.values.shape[0] // count
    at = slice(index * size, (index + 1) * size)
    return Content(content.values[at], None if content.undefined is None else content.undefined[at])


def _reduced(parts: list[Content], operation: str, like: NkiTensor) -> Content:
    total: Array = to_float32(parts[0].values)
    for part in parts[1:]:
        total = ARITHMETIC[operation](total, to_float32(part.values))
    return Content(rounded(total, like), merge(*(p.undefined for p in parts)))


def _sliced(
    srcs: Any, dsts: Any, dim: int, ranks: int, sbuf_too: bool = False
) -> tuple[tuple[NkiTensor, ...], tuple[NkiTensor, ...]]:
    """Tensors of a collective that hands every rank a slice of dimension 0."""
    sources, destinations = tensors("srcs", srcs), tensors("dsts", dsts)
    in_hbm("srcs", sources, sbuf_too)
    in_hbm("dsts", destinations, sbuf_too)
    if dim != 0:
        raise KernelError("collective", f"collective_dim = {dim}: only 0.")
    for source in sources:
        if source.shape[0] % ranks:
            raise KernelError(
                "collective", f"dimension 0 of {source!r} does not divide by the {ranks} ranks."
            )
    return sources, destinations


@instruction
def all_reduce(
    srcs: Any, dsts: Any, replica_group: Any, op: Any, priority: int | None = None, name: str | None = None
) -> Work:
    """Elementwise op (add, minimum, maximum) over the group; every rank gets the result."""
    _start(priority)
    sources, destinations = tensors("srcs", srcs), tensors("dsts", dsts)
    in_hbm("srcs", sources, sbuf_too=True)
    in_hbm("dsts", destinations, sbuf_too=True)
    if len(sources) > 1 and any(t.on_chip for t in sources):
        raise KernelError("collective", "several tensors per call only in HBM.")
    for source, destination in zip(sources, destinations, strict=False):
        if source.size != destination.size:
            raise KernelError("shape", f"{source!r} and {destination!r} must have equally many elements.")
    operation = reduction(op, "op", only=REDUCES)
    group = own_group(replica_group)

    def act(contents: dict[int, list[Content]]) -> dict[int, list[Content]]:
        result = [_reduced([contents[r][i] for r in group], operation, t) for i, t in enumerate(sources)]
        return dict.fromkeys(group, result)

    return exchange("all_reduce", (operation, as_group(replica_group)), group, sources, destinations, act)


@instruction
def all_gather(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    collective_dim: int,
    priority: int | None = None,
    name: str | None = None,
) -> Work:
    """Concatenate in the order of the group along dimension 0 (in SBUF also 1)."""
    _start(priority)
    sources, destinations = _gatherable(srcs, dsts, collective_dim)
    group = own_group(replica_group)

    def act(contents: dict[int, list[Content]]) -> dict[int, list[Content]]:
        result = [_joined([contents[r][i] for r in group], collective_dim) for i in range(len(sources))]
        return dict.fromkeys(group, result)

    return exchange(
        "all_gather", (collective_dim, as_group(replica_group)), group, sources, destinations, act
    )


def _gatherable(srcs: Any, dsts: Any, dim: int) -> tuple[tuple[NkiTensor, ...], tuple[NkiTensor, ...]]:
    sources, destinations = tensors("srcs", srcs), tensors("dsts", dsts)
    in_hbm("srcs", sources, sbuf_too=True)
    in_hbm("dsts", destinations, sbuf_too=True)
    for tensor in sources:
        if dim not in ((0, 1) if tensor.on_chip else (0,)) or (tensor.on_chip and tensor.ndim != 2):
            raise KernelError(
                "collective",
                f"collective_dim = {dim} of {tensor!r}: 0, and in SBUF 0 or 1 of two dimensions.",
            )
    return sources, destinations


@instruction
def reduce_scatter(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    collective_dim: int,
    op: Any,
    priority: int | None = None,
    name: str | None = None,
) -> Work:
    """Reduce over the group; the rank at position r keeps slice r of dimension 0."""
    _start(priority)
    group = own_group(replica_group)
    sources, destinations = _sliced(srcs, dsts, collective_dim, len(group), sbuf_too=True)
    operation = reduction(op, "op", only=REDUCES)

    def act(contents: dict[int, list[Content]]) -> dict[int, list[Content]]:
        whole = [_reduced([contents[r][i] for r in group], operation, t) for i, t in enumerate(sources)]
        return {rank: [_piece(w, p, len(group)) for w in whole] for p, rank in enumerate(group)}

    return exchange("reduce_scatter", (operation, as_group(replica_group)), group, sources, destinations, act)


@instruction
def all_to_all(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    collective_dim: int,
    priority: int | None = None,
    name: str | None = None,
) -> Work:
    """Slice s of the rank at position r goes to slot r of the rank at position s."""
    _start(priority)
    group = own_group(replica_group)
    sources, destinations = _sliced(srcs, dsts, collective_dim, len(group))

    def act(contents: dict[int, list[Content]]) -> dict[int, list[Content]]:
        return {
            rank: [
                _joined([_piece(contents[r][i], p, len(group)) for r in group], 0)
                for i in range(len(sources))
            ]
            for p, rank in enumerate(group)
        }

    return exchange("all_to_all", (as_group(replica_group),), group, sources, destinations, act)


@instruction
def collective_permute(
    srcs: Any,
    dsts: Any,
    source_target_pairs: Sequence[Sequence[int]],
    priority: int | None = None,
    name: str | None = None,
) -> Work:
    """Each (source, target) pair carries one tensor. The runtime supports circles of neighbours only."""
    _start(priority)
    sources, destinations = tensors("srcs", srcs), tensors("dsts", dsts)
    in_hbm("srcs", sources)
    in_hbm("dsts", destinations)
    if len(sources) != 1:
        raise KernelError("collective", f"{len(sources)} tensors: collective_permute carries one.")
    pairs = tuple((int(a), int(b)) for a, b in source_target_pairs)
    senders, receivers = [a for a, _ in pairs], [b for _, b in pairs]
    if sorted(senders) != sorted(receivers) or len(set(senders)) != len(senders):
        raise KernelError(
            "collective", f"source_target_pairs = {pairs}: every rank sends once and receives once."
        )
    members = tuple(sorted(senders))
    if current_core().rank not in members:
        raise KernelError("collective", f"rank {current_core().rank} is in none of the pairs {pairs}.")

    def act(contents: dict[int, list[Content]]) -> dict[int, list[Content]]:
        return {target: contents[source] for source, target in pairs}

    return exchange("collective_permute", (pairs,), members, sources, destinations, act)


def _channels(
    value: Any, argument: str, channel_ids: Sequence[int], group: tuple[int, ...]
) -> tuple[NkiTensor, ...]:
    found = tuple(
        t for entry in (value if isinstance(value, list | tuple) else [value])
        for t in (entry if isinstance(entry, list | tuple) else [entry])
    )  # fmt: skip
    in_hbm(argument, tensors(argument, found))
    ids = list(channel_ids)
    most = 4 if len(group) == current_core().world.ranks else 2
    if ids != list(range(len(ids))) or len(ids) > most or len(found) != len(ids):
        raise KernelError(
            "collective",
            f"channel_ids = {ids} with {len(found)} tensors in {argument}: one tensor per channel, "
            f"counted from 0, "
            f"at most {most}.",
        )
    return found


@instruction
def collective_permute_implicit(
    srcs_by_channel: Any,
    dsts_by_channel: Any,
    replica_group: Any,
    channel_ids: Sequence[int] = (0,),
    priority: int | None = None,
    name: str | None = None,
) -> Work:
    """Send to the successor in the ring of the group, receive from the predecessor."""
    _start(priority)
    group = own_group(replica_group)
    sources = _channels(srcs_by_channel, "srcs_by_channel", channel_ids, group)
    destinations = _channels(dsts_by_channel, "dsts_by_channel", channel_ids, group)

    def act(contents: dict[int, list[Content]]) -> dict[int, list[Content]]:
        return {rank: contents[group[p - 1]] for p, rank in enumerate(group)}

    return exchange(
        "collective_permute_implicit", (as_group(replica_group),), group, sources, destinations, act
    )


@instruction
def collective_permute_implicit_reduce(
    srcs0_by_channel: Any,
    srcs1_by_channel: Any,
    dsts_by_channel: Any,
    replica_group: Any,
    op: Any,
    channel_ids: Sequence[int] = (0,),
    priority: int | None = None,
    name: str | None = None,
) -> Work:
    """Send op(source 0, source 1) to the successor, receive the predecessor's."""
    _start(priority)
    group = own_group(replica_group)
    operation = reduction(op, "op", only=REDUCES)
    first = _channels(srcs0_by_channel, "srcs0_by_channel", channel_ids, group)
    second = _channels(srcs1_by_channel, "srcs1_by_channel", channel_ids, group)
    destinations = _channels(dsts_by_channel, "dsts_by_channel", channel_ids, group)
    for a, b in zip(first, second, strict=True):
        if a.shape != b.shape or a.dtype is not b.dtype:
            raise KernelError("shape", f"{a!r} and {b!r} must have one shape and dtype.")
    combined = [_reduced([read(a), read(b)], operation, a) for a, b in zip(first, second, strict=True)]

    def act(contents: dict[int, list[Content]]) -> dict[int, list[Content]]:
        return {rank: contents[group[p - 1]] for p, rank in enumerate(group)}

    settings = (operation, as_group(replica_group))
    return exchange("collective_permute_implicit_reduce", settings, group, first, destinations, act, combined)


def rank_id(name: str | None = None) -> VirtualRegister:
    """This rank, in a register."""
    return VirtualRegister(current_core().rank)


def collective_permute_implicit_current_processing_rank_id(
    iteration_id: int, replica_group: Any, channel_id: int = 0, name: str | None = None
) -> VirtualRegister:
    """Whose data is in hand after so many permutes; 0 is the own rank. For a scalar_offset."""
    group = own_group(replica_group)
    position = group.index(current_core().rank)
    return VirtualRegister(group[(position - int(iteration_id)) % len(group)])
