"""Tensors at explicit addresses that share bytes: writing one destroys what the other held there."""

from typing import TYPE_CHECKING

from omni_neuron.sim.memory.buffer import OVERWRITTEN, Buffer

if TYPE_CHECKING:
    from omni_neuron.sim.execution.core import Core
    from omni_neuron.sim.memory.tensor import NkiTensor


def overwrite_neighbours(core: "Core", view: "NkiTensor", offset: int) -> None:
    """Mark what other tensors held in the partitions and bytes that a write to `view` just covered."""
    from omni_neuron.sim.memory.access import bounding_box

    buffer = view.buffer_
    holders = core.holders[buffer.space]
    assert buffer.address is not None
    first, last, low, high = bounding_box(view, offset)
    first, last = first + buffer.address[0], last + buffer.address[0]
    low, high = low + buffer.address[1], high + buffer.address[1]
    for identity, (reference, box) in list(holders.items()):
        if identity == buffer.identity or box[0] > last or first > box[1] or box[2] > high or low > box[3]:
            continue
        other = reference()
        if other is None:
            del holders[identity]
            continue
        _overwrite(other, first, last, low, high)
        other.overwritten_by = f"overwritten through {buffer}, at the same address, by {core.here()}"
        if bool(other.undefined.all()):
            del holders[identity]
    core.hold(buffer)


def _overwrite(other: Buffer, first: int, last: int, low: int, high: int) -> None:
    """Mark bytes `low..high` of partitions `first..last` of the core."""
    assert other.address is not None
    partition, start = other.address
    rows = slice(max(first - partition, 0), min(last - partition + 1, other.shape[0]))
    begin, end = max(low - start, 0), min(high - start + 1, other.allocation.partition_bytes)
    table = other.undefined.reshape(other.shape[0], -1)
    table[rows, begin // other.granule : -(-end // other.granule)] = OVERWRITTEN
    other.complete = False
    if other.accumulated is not None:
        size = other.dtype.itemsize
        other.accumulated.reshape(other.shape[0], -1)[rows, begin // size : -(-end // size)] = False
