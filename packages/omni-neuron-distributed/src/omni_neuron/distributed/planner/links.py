"""How long a byte takes: the most loaded link of the torus when all groups of a layout talk at once.

Every message takes a shortest way, axis after axis, half of it each way round where both are equally long. A
byte sent by every rank loads the links; the most loaded one, divided by its speed, is the seconds per byte.
Between cores of one chip the data pass through its memory.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

from omni_neuron.distributed.planner.communication import Pattern
from omni_neuron.distributed.planner.machines import machine
from omni_neuron.distributed.topology import Fabric, Topology

Group = tuple[int, ...]
# One direction of a link: the chip it leaves, its axis and whether towards higher indices.
Link = tuple[int, int, int]


@lru_cache(maxsize=4096)
def seconds_per_byte(topology: Topology, groups: tuple[Group, ...], pattern: Pattern) -> float:
    """Nominal seconds for every rank of every group to send one byte in ``pattern``, all at once.

    ``ring`` is a two-way ring in the best order of chips, ``exchange`` goes one way in the order of the
    group, ``all-to-all`` is equal parts to all others.
    """
    if topology.fabric is Fabric.HOST:
        return 0.0
    links: dict[Link, float] = defaultdict(float)
    memory: dict[int, float] = defaultdict(float)
    for group in groups:
        for source, target, part in _messages(topology, group, pattern):
            here, there = topology.chip_of(source), topology.chip_of(target)
            if here == there:
                memory[source] += part
            for link, share in _way(topology, here, there):
                links[link] += part * share
    slowest = max((load / topology.axis_gb_s[axis] for (_, axis, _), load in links.items()), default=0.0)
    on_chip = max(memory.values(), default=0.0) / machine(topology).core_to_core_gb_s
    return max(slowest, on_chip) * 1e-9


def _messages(topology: Topology, group: Group, pattern: Pattern) -> Iterator[tuple[int, int, float]]:
    count = len(group)
    if count == 1:
        return
    if pattern == "all-to-all":
        for source in group:
            yield from ((source, target, 1 / (count - 1)) for target in group if target != source)
        return
    order = group if pattern == "exchange" else sorted(group, key=lambda core: _snake(topology, core))
    for index, source in enumerate(order):
        after, before = order[(index + 1) % count], order[index - 1]
        if pattern == "exchange":
            yield source, after, 1.0
        else:
            yield source, after, 0.5
            yield source, before, 0.5


def _snake(topology: Topology, core: int) -> tuple[int, ...]:
    """A key under which a rectangle of chips sorts into a closed walk: every other row runs backwards."""
    key: list[int] = []
    for index, size in zip(topology.position_of(topology.chip_of(core)), topology.shape, strict=True):
        key.append(size - 1 - index if sum(key) % 2 else index)
    return (*key, topology.offset_of(core))


def _way(topology: Topology, here: int, there: int) -> Iterator[tuple[Link, float]]:
    if here == there:
        return
    if topology.fabric is Fabric.SWITCH:
        yield (here, 0, 1), 1.0
        return
    position = list(topology.position_of(here))
    for axis, goal in enumerate(topology.position_of(there)):
        size = topology.shape[axis]
        forward = (goal - position[axis]) % size
        ways = {+1: forward, -1: size - forward}
        shortest = min(ways.values())
        if forward:
            chosen = [sign for sign, length in ways.items() if length == shortest]
            for sign in chosen:
                for step in range(shortest):
                    index = (position[axis] + sign * step) % size
                    yield (
                        (_chip(topology, [*position[:axis], index, *position[axis + 1 :]]), axis, sign),
                        1 / len(chosen),
                    )
        position[axis] = goal


def _chip(topology: Topology, position: Sequence[int]) -> int:
    strides = (math.prod(topology.shape[axis + 1 :]) for axis in range(len(position)))
    return sum(index * stride for index, stride in zip(position, strides, strict=True))
