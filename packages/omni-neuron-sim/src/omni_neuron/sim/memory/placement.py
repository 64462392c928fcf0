"""Whether everything that is alive at once fits: SBUF by bytes of a partition, PSUM by banks.

A tensor is alive from the first instruction that uses it to the last, in program order, which is the least
that a compiler can do with; one with an address covers exactly its bytes, others are counted where room is
left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.machine import OnChipMemory
from omni_neuron.sim.memory.buffer import Allocation
from omni_neuron.sim.memory.spaces import MemorySpace

_GRAIN = 32  # bytes of a partition that one cell of the map of addresses stands for


@dataclass(frozen=True)
class Peak:
    """The most that is alive at once: bytes per partition in SBUF, banks in PSUM."""

    amount: int
    limit: int
    instruction: int
    alive: tuple[Allocation, ...]


def usable_sbuf(memory: OnChipMemory) -> int:
    return memory.sbuf_usable_partition_bytes or memory.sbuf_partition_bytes


def peak(allocations: Sequence[Allocation], space: MemorySpace, memory: OnChipMemory) -> Peak:
    """Sweep the program over the live ranges of one memory."""
    sbuf = space is MemorySpace.sbuf
    grain = _GRAIN if sbuf else memory.psum_bank_bytes
    limit = usable_sbuf(memory) if sbuf else memory.psum_banks
    chosen = [a for a in allocations if a.space is space and a.first_use >= 0]
    events = sorted(
        [(a.first_use, 0, i) for i, a in enumerate(chosen)]
        + [(a.last_use, 1, i) for i, a in enumerate(chosen)]
    )
    covered = np.zeros(memory.sbuf_partition_bytes // _GRAIN + 1, dtype=np.int32)
    placed = floating = best = best_at = 0
    for at, ends, i in events:
        one = chosen[i]
        cells = -(-one.partition_bytes // grain)
        if one.address is None:
            floating += -cells if ends else cells
        else:
            low = one.address[1] // grain
            part = covered[low : -(-(one.address[1] + one.partition_bytes) // grain)]
            if ends:
                part -= 1
                placed -= int((part == 0).sum())
            else:
                placed += int((part == 0).sum())
                part += 1
        if placed + floating > best:
            best, best_at = placed + floating, at
    alive = tuple(a for a in chosen if a.first_use <= best_at <= a.last_use)
    return Peak(best * grain if sbuf else best, limit, best_at, alive)


def check_capacity(allocations: Sequence[Allocation], memory: OnChipMemory) -> tuple[Peak, Peak]:
    """Peaks of SBUF and PSUM; KernelError where one exceeds what there is."""
    sbuf = peak(allocations, MemorySpace.sbuf, memory)
    psum = peak(allocations, MemorySpace.psum, memory)
    for found, rule, unit in (
        (sbuf, "sbuf-capacity", "bytes per partition"),
        (psum, "psum-capacity", "banks"),
    ):
        if found.amount > found.limit:
            largest = sorted(found.alive, key=lambda a: -a.partition_bytes)[:4]
            raise KernelError(
                rule,
                f"{len(found.alive)} tensors alive at instruction {found.instruction} need "
                f"{found.amount} {unit}, "
                f"and there are {found.limit}; the largest: {'; '.join(map(str, largest))}.",
                where=found.alive[-1].where,
            )
    return sbuf, psum
