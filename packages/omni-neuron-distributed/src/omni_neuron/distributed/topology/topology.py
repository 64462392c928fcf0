"""Chips on a torus, behind a switch or in one host; ranks on their cores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from omni_neuron.distributed.errors import LayoutError


class Fabric(Enum):
    """How the chips of an instance reach each other."""

    TORUS = "torus"
    SWITCH = "switch"
    HOST = "host"


@dataclass(frozen=True)
class Topology:
    """One machine. Rank r runs on logical core r: chip ``r // cores_per_chip``, core offset the rest.

    Args:
        name: instance name, such as ``"trn2.48xlarge"``.
        target: compile target, such as ``"trn2"``.
        lnc: physical cores per logical core.
        fabric: how chips reach each other.
        shape: chips per axis of the torus, slowest first; ids are row-major. One axis elsewhere.
        cores_per_chip: logical cores of a chip.
        hbm_gb_per_core: memory of a logical core, in the unit of the published tables (24 on trn2).
        axis_gb_s: GB/s of one link in one direction, per axis.
        link_source: where ``axis_gb_s`` comes from.
        torus_rule: whether groups must pass the published rule for trn2, see ``why_not``.
        caution: what is not known about this machine; empty when nothing is.
    """

    name: str
    target: str
    lnc: int
    fabric: Fabric
    shape: tuple[int, ...]
    cores_per_chip: int
    hbm_gb_per_core: float
    axis_gb_s: tuple[float, ...]
    link_source: str
    torus_rule: bool = False
    caution: str = ""

    @cached_property
    def chips(self) -> int:
        """Number of chips."""
        return math.prod(self.shape)

    @property
    def cores(self) -> int:
        """Number of logical cores, which is the largest world."""
        return self.chips * self.cores_per_chip

    @property
    def link_gb_s(self) -> float:
        """GB/s of one link in one direction, on the slowest axis of the machine."""
        return min(self.axis_gb_s)

    def chip_of(self, core: int) -> int:
        """The chip that holds a core."""
        return self._checked("core", core, self.cores) // self.cores_per_chip

    def offset_of(self, core: int) -> int:
        """The place of a core on its chip."""
        return self._checked("core", core, self.cores) % self.cores_per_chip

    def position_of(self, chip: int) -> tuple[int, ...]:
        """Index of a chip on every axis: (row, column) on a 4 x 4 torus."""
        return self._positions[self._checked("chip", chip, self.chips)]

    def neighbours(self, chip: int) -> tuple[int, ...]:
        """Chips one link (or one switch) away, ascending."""
        return tuple(other for other in range(self.chips) if self.hops(chip, other) == 1)

    def hops(self, chip: int, other: int) -> int:
        """Links on a shortest way between two chips; through a switch it is one."""
        if self.fabric is not Fabric.TORUS:
            return int(self._checked("chip", chip, self.chips) != self._checked("chip", other, self.chips))
        ways = zip(self.position_of(chip), self.position_of(other), self.shape, strict=True)
        return sum(min((here - there) % size, (there - here) % size) for here, there, size in ways)

    def is_ring(self, chips: Sequence[int]) -> bool:
        """Whether the chips, in any order, are one chip, two neighbours, or a whole axis of the torus.

        Three of four chips in a line are a path and no ring. Through a switch every set is a ring.
        """
        if self.fabric is not Fabric.TORUS:
            return self._all_reachable(chips)
        return self.is_rectangle(chips) and sum(len(axis) > 1 for axis in self.axis_sets(chips)) <= 1

    def is_rectangle(self, chips: Sequence[int]) -> bool:
        """Whether the chips, in any order, are the product of a ring on every axis."""
        if self.fabric is not Fabric.TORUS:
            return self._all_reachable(chips)
        if not chips:
            return False
        sets = self.axis_sets(chips)
        rings = all(_is_axis_ring(indices, size) for indices, size in zip(sets, self.shape, strict=True))
        return rings and len(set(chips)) == math.prod(map(len, sets))

    def axis_sets(self, chips: Sequence[int]) -> tuple[frozenset[int], ...]:
        """The indices that the chips take on every axis."""
        positions = [self.position_of(chip) for chip in chips]
        return tuple(frozenset(position[axis] for position in positions) for axis in range(len(self.shape)))

    def routes(self, group: Sequence[int]) -> bool:
        """Whether a replica group can be built on this machine; ``why_not`` has the rule."""
        return self.why_not(group) is None

    def why_not(self, group: Sequence[int]) -> str | None:
        """Why a replica group cannot be built, as the end of a sentence; None when it can.

        The rule that the published trn2 layouts obey: every chip contributes the same core offsets, and the
        chips are a rectangle of torus rings (``is_rectangle``). It is necessary in all published
        experience, and not proven sufficient. Without ``torus_rule`` every group is taken to route.
        """
        offsets: dict[int, list[int]] = {}
        for core in sorted(group):
            offsets.setdefault(self.chip_of(core), []).append(core % self.cores_per_chip)
        if not self.torus_rule:
            return None
        chips = list(offsets)
        other = next((chip for chip in chips if offsets[chip] != offsets[chips[0]]), None)
        if other is not None:
            return (
                f"its chips {chips} contribute different cores, {offsets[chips[0]]} of chip {chips[0]} and "
                f"{offsets[other]} of chip {other}"
            )
        if not self.is_rectangle(chips):
            return f"its chips {chips} are no ring or rectangle of rings on the {self._torus} torus"
        return None

    @cached_property
    def _positions(self) -> list[tuple[int, ...]]:
        return list(itertools.product(*map(range, self.shape)))

    @property
    def _torus(self) -> str:
        return " x ".join(map(str, self.shape))

    def _all_reachable(self, chips: Sequence[int]) -> bool:
        return bool([self._checked("chip", chip, self.chips) for chip in chips])

    def _checked(self, what: str, value: int, count: int) -> int:
        if not 0 <= value < count:
            raise LayoutError(f"{what}={value} must lie in 0..{count - 1} on {self.name}.")
        return value


def _is_axis_ring(indices: frozenset[int], size: int) -> bool:
    if len(indices) in (1, size):
        return True
    low, high = min(indices), max(indices)
    return len(indices) == 2 and high - low in (1, size - 1)
