"""Playing traces against the engines: each takes its instructions in program order, once operands allow.

DMAs share their bandwidth: one that waits holds up no other, and a later one may use a gap before it.
Tensors in SBUF without an address are placed freely (a compiler renames them), PSUM has its banks,
addresses mean what they say. A collective is triggered from the GpSimd queue and does not run beside a DMA
transpose.
"""

import math
from bisect import bisect_right
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from omni_neuron.sim.cost import constants as c
from omni_neuron.sim.cost.cycles import clock_hz, collective_s, duration
from omni_neuron.sim.cost.hazards import Box, Hazards, psum_banks
from omni_neuron.sim.cost.trace import PSUM_ADDRESSES, Event, Operand, Trace
from omni_neuron.sim.machine import Chip

ENGINES = ("tensor", "vector", "scalar", "gpsimd", "dma", "sync", "collective")


class Slot(NamedTuple):
    """An instruction in time. `waits_for` is the instruction of this core that held it up, -1 for none."""

    event: Event
    engine: str
    start_s: float
    busy_s: float
    finish_s: float
    waits_for: int


@dataclass
class Timeline:
    """One core's instructions in time."""

    rank: int
    core: int
    slots: list[Slot] = field(default_factory=list)

    @property
    def makespan_s(self) -> float:
        return max((slot.finish_s for slot in self.slots), default=0.0)

    def busy_s(self, engine: str) -> float:
        return sum(slot.busy_s for slot in self.slots if slot.engine == engine)


class _Player:
    """One core on its way through its trace."""

    def __init__(self, trace: Trace, chip: Chip) -> None:
        self.trace = trace
        self.chip = chip
        self.timeline = Timeline(trace.rank, trace.core)
        self.hazards = Hazards()
        self.free: dict[str, tuple[float, int]] = dict.fromkeys(ENGINES, (0.0, -1))
        self.bandwidth = Gaps()
        self.exclusive: dict[str, tuple[float, int]] = {"dma_transpose": (0.0, -1), "collective": (0.0, -1)}
        memory = chip.core.memory
        self.banks = psum_banks(trace, memory.psum_banks, memory.psum_bank_bytes)
        self.position = 0
        self.meetings: dict[Hashable, int] = {}

    @property
    def event(self) -> Event | None:
        events = self.trace.events
        return events[self.position] if self.position < len(events) else None

    def place(self, operand: Operand) -> tuple[int, Box]:
        offset = self.banks.get(operand.storage)
        if offset is None:
            return operand.storage, operand.box
        first, last, low, high = operand.box
        return PSUM_ADDRESSES, (first, last, low + offset, high + offset)

    def ready(self, event: Event, *engines: str) -> tuple[float, int]:
        """When engines and operands are there, and the instruction that came last."""
        best = max((self.free[engine] for engine in engines), key=lambda f: f[0])
        for writes, operands in ((False, event.awaited), (True, event.writes)):
            for operand in operands:
                candidate = self.hazards.ready(operand, *self.place(operand), writes)
                best = max(best, candidate, key=lambda f: f[0])
        return best

    def finish(self, event: Event, engine: str, start: float, busy: float, end: float, cause: int) -> None:
        index = self.position
        for writes, operands in ((False, event.awaited), (True, event.writes)):
            for operand in operands:
                self.hazards.note(operand, *self.place(operand), writes, end, index)
        self.timeline.slots.append(Slot(event, engine, start, busy, end, cause))
        if engine != "dma":
            self.free[engine] = (start + busy, index)
        self.position += 1

    def run(self, event: Event) -> None:
        """An instruction that needs nobody else."""
        time = duration(event, self.chip)
        start, cause = self.ready(event, event.engine)
        if event.opcode == "dma_transpose":
            start, cause = max((start, cause), self.exclusive["collective"], key=lambda f: f[0])
            self.exclusive["dma_transpose"] = (start + time.latency_s, self.position)
        if event.engine == "dma":
            taken, before = self.bandwidth.take(start, time.busy_s, self.position)
            start, cause = (taken, before) if taken > start else (start, cause)
        self.finish(event, event.engine, start, time.busy_s, start + time.latency_s, cause)


class Gaps:
    """When a shared resource is not taken: gaps in time, each with the instruction that ends before it."""

    def __init__(self) -> None:
        self._gaps: list[tuple[float, float, int]] = [(0.0, math.inf, -1)]

    def take(self, earliest_s: float, length_s: float, index: int) -> tuple[float, int]:
        """Take the first piece of this length: its start, and the instruction that ended before it."""
        at = max(bisect_right(self._gaps, (earliest_s, math.inf, 0)) - 1, 0)
        for position in range(at, len(self._gaps)):
            begin, end, before = self._gaps[position]
            start = max(begin, earliest_s)
            if start + length_s <= end:
                pieces = [(begin, start, before), (start + length_s, end, index)]
                self._gaps[position : position + 1] = [p for p in pieces if p[1] > p[0]]
                return start, before
        raise AssertionError("the last gap has no end")


def play(traces: list[Trace], chip: Chip, lnc: int) -> list[Timeline]:
    """Timelines of all cores of a launch; meetings start when the last member has come."""
    players = {(t.rank, t.core): _Player(t, chip) for t in traces}
    arrived: dict[Any, set[tuple[int, int]]] = {}
    moving = True
    while moving:
        moving = False
        for member, player in players.items():
            while (event := player.event) is not None:
                if event.meeting is None:
                    player.run(event)
                    moving = True
                    continue
                key, members = event.meeting
                turn = (key, player.meetings.get(key, 0))
                waiting = arrived.setdefault(turn, set())
                waiting.add(member)
                if waiting != set(members):
                    break
                _meet([players[m] for m in members], key, chip, lnc)
                moving = True
    return [player.timeline for player in players.values()]


def _meet(players: list[_Player], key: Hashable, chip: Chip, lnc: int) -> None:
    """Everybody's next instruction is the same meeting."""
    ranks = len({player.timeline.rank for player in players})
    collective = isinstance(key, tuple) and key[0] == "group"
    starts = []
    for player in players:
        event = player.event
        assert event is not None
        engines = ("gpsimd", "collective") if collective else (event.engine,)
        begin = player.ready(event, *engines)
        if collective:
            begin = max(begin, player.exclusive["dma_transpose"], key=lambda f: f[0])
        starts.append(begin)
    together = max(start for start, _ in starts)
    for player, (start, cause) in zip(players, starts, strict=True):
        event = player.event
        assert event is not None
        trigger = c.INSTRUCTION_CYCLES / clock_hz("gpsimd", chip)
        if collective:
            busy = collective_s(event, ranks, chip, lnc)
            player.free["gpsimd"] = (together + trigger, player.position)
            player.exclusive["collective"] = (together + busy, player.position)
            player.finish(event, "collective", together, busy, together + busy, cause)
        else:
            time = duration(event, chip)
            last = together + time.latency_s
            player.finish(
                event, event.engine, together, time.busy_s, last, cause if start == together else -1
            )
        player.meetings[key] = player.meetings.get(key, 0) + 1
