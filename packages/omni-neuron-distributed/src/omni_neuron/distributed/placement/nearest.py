"""The layout to offer in place of one that does not route."""

from __future__ import annotations

import math
from collections.abc import Iterator

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement.search import find_placement
from omni_neuron.distributed.topology import Topology

_DEGREES = ("tp", "ulysses", "ring", "cfg", "dp", "pp")


def nearest_layout(layout: ParallelLayout, topology: Topology) -> ParallelLayout:
    """The routable layout whose degrees differ least: the smallest sum of |log2| of their ratios.

    Degrees are kept or replaced by powers of two, guidance by 1 or 2; of equals, the one with most ranks,
    then with most tensor parallelism.
    """
    candidates = sorted(_candidates(layout, topology), key=lambda other: _distance(layout, other))
    for candidate in candidates:
        placement = find_placement(candidate, topology)
        if placement is not None:
            return candidate.with_placement(placement)
    raise LayoutError(f"No layout routes on {topology.name}.")


def _candidates(layout: ParallelLayout, topology: Topology) -> Iterator[ParallelLayout]:
    def extend(degrees: dict[str, int], room: int) -> Iterator[dict[str, int]]:
        if len(degrees) == len(_DEGREES):
            yield degrees
            return
        name = _DEGREES[len(degrees)]
        limit = min(room, 2) if name == "cfg" else room
        choices = {1 << bit for bit in range(limit.bit_length())} | {getattr(layout, name)}
        for degree in sorted(choices):
            if degree <= room:
                yield from extend({**degrees, name: degree}, room // degree)

    for degrees in extend({}, topology.cores):
        cp = degrees["ulysses"] * degrees["ring"]
        replica = degrees["tp"] * cp * degrees["cfg"] * degrees["pp"]
        vae = layout.vae if replica % layout.vae == 0 else math.gcd(layout.vae, replica)
        for share in {vae, vae & -vae}:
            yield ParallelLayout(
                degrees["tp"],
                cp,
                degrees["cfg"],
                degrees["dp"],
                degrees["pp"],
                ulysses=degrees["ulysses"],
                vae=share,
                text_encoder=layout.text_encoder,
            )


def _distance(layout: ParallelLayout, other: ParallelLayout) -> tuple[float, int, tuple[int, ...]]:
    names = (*_DEGREES, "vae")
    degrees = tuple(getattr(other, name) for name in names)
    ratios = (degree / getattr(layout, name) for degree, name in zip(degrees, names, strict=True))
    return (
        round(sum(abs(math.log2(ratio)) for ratio in ratios), 9),
        -other.world_size,
        tuple(-degree for degree in degrees),
    )
