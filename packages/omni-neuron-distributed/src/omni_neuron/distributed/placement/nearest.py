"""The layout to offer in place of one that does not route."""

from __future__ import annotations

import math
from collections.abc import Iterator

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement.search import find_placement
from omni_neuron.distributed.topology import Topology

_DEGREES = ("tp", "cfg", "ulysses", "ring", "dp", "pp")
Degrees = tuple[int, ...]


def nearest_layout(layout: ParallelLayout, topology: Topology) -> ParallelLayout:
    """The routable layout whose degrees differ least: the smallest sum of |log2| of their ratios.

    Degrees are kept or replaced by powers of two, guidance by 1 or 2; of equals, the one with most tensor
    parallelism, then guidance. ``vae`` shrinks to what divides the replica.
    """
    wanted = tuple(getattr(layout, name) for name in _DEGREES)
    candidates = sorted(_choices(wanted, topology.cores), key=lambda degrees: _distance(wanted, degrees))
    for degrees in candidates:
        for candidate in _layouts(layout, degrees):
            placement = find_placement(candidate, topology)
            if placement is not None:
                return candidate.with_placement(placement)
    raise LayoutError(f"{layout} resembles no layout that routes on {topology.name}: change its degrees.")


def _choices(wanted: Degrees, room: int, chosen: Degrees = ()) -> Iterator[Degrees]:
    """Degrees whose product fits into ``room`` ranks."""
    place = len(chosen)
    if place == len(wanted):
        yield chosen
        return
    limit = min(room, 2) if _DEGREES[place] == "cfg" else room
    for degree in {1 << bit for bit in range(limit.bit_length())} | {wanted[place]}:
        if degree <= room:
            yield from _choices(wanted, room // degree, (*chosen, degree))


def _distance(wanted: Degrees, degrees: Degrees) -> tuple[float, Degrees]:
    apart = sum(abs(math.log2(here / there)) for here, there in zip(degrees, wanted, strict=True))
    return round(apart, 9), tuple(-degree for degree in degrees)


def _layouts(layout: ParallelLayout, degrees: Degrees) -> Iterator[ParallelLayout]:
    tp, cfg, ulysses, ring, dp, pp = degrees
    shared = math.gcd(layout.vae, tp * cfg * ulysses * ring * pp)
    for vae in dict.fromkeys((shared, shared & -shared)):
        yield ParallelLayout(
            tp, ulysses * ring, cfg, dp, pp, ulysses=ulysses, vae=vae, text_encoder=layout.text_encoder
        )
