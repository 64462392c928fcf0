"""Placements of a layout on a torus, found by giving every factor some dimensions of a hypercube.

A cycle of four chips is a square, so a 4 x 4 torus with four cores per chip is a cube of six dimensions: two
for the core offset, two for each axis, along which index i has the binary reflected Gray code of i as its
coordinates (Gray 1953; Saad and Schultz, "Topological properties of hypercubes", 1988). A factor of 2^n takes
n dimensions. Its groups are then subcubes: equal offsets on every chip, and on each axis one index, two
adjacent ones or all, which is what routes. Counting a group's chips in Gray code again puts consecutive
members, and the last and the first, on one chip or on neighbours, which is what a ring wants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement.routability import offending_group
from omni_neuron.distributed.topology import Fabric, Topology

FACTORS = ("tp", "ulysses", "ring", "cfg")
# One dimension of the cube: which axis (-1 is the core offset) and which bit of the index there.
Dimension = tuple[int, int]


def find_placement(layout: ParallelLayout, topology: Topology) -> tuple[int, ...] | None:
    """The first of :func:`placements`, with tensor parallelism nearest; None when none routes."""
    return next(placements(layout, topology), None)


def placements(layout: ParallelLayout, topology: Topology) -> Iterator[tuple[int, ...]]:
    """Every distinct placement of this form whose groups all route, in a fixed order.

    Replicas of data parallelism and stages of a pipeline take consecutive cores, whatever their number; the
    other degrees must be powers of two unless all ranks share a chip. Mirror images are left out.
    """
    if layout.world_size > topology.cores:
        return
    for placement in _candidates(layout, topology):
        if offending_group(layout.with_placement(placement), topology) is None:
            yield placement


def _candidates(layout: ParallelLayout, topology: Topology) -> Iterator[tuple[int, ...]]:
    size = layout.tp * layout.cp * layout.cfg
    dimensions = _dimensions(topology) if topology.torus_rule else []
    if size == 1 or size & (size - 1) or size > 2 ** len(dimensions):
        yield tuple(range(layout.world_size))
        return
    dimensions = dimensions[: size.bit_length() - 1]
    for owners in _assignments(layout, dimensions):
        block = _block(layout, topology, dimensions, owners)
        yield _repeat(layout, block)


def _dimensions(topology: Topology) -> list[Dimension]:
    """Dimensions of the cube from the fastest core number on; empty where a size is no power of two."""
    axes = [(-1, topology.cores_per_chip)]
    axes += [(axis, topology.shape[axis]) for axis in reversed(range(len(topology.shape)))]
    cubic = topology.fabric is Fabric.TORUS and all(size in (1, 2, 4) for size in topology.shape)
    if not cubic or topology.cores_per_chip & (topology.cores_per_chip - 1):
        return []
    return [(axis, bit) for axis, size in axes for bit in range(size.bit_length() - 1)]


def _assignments(layout: ParallelLayout, dimensions: Sequence[Dimension]) -> Iterator[tuple[str, ...]]:
    """Owners of the dimensions; on one axis in the order of ``FACTORS``, as the others are mirror images."""
    left = {name: getattr(layout, name).bit_length() - 1 for name in FACTORS}

    def extend(owners: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if len(owners) == len(dimensions):
            yield owners
            return
        place = len(owners)
        same_axis = place > 0 and dimensions[place][0] == dimensions[place - 1][0]
        first = FACTORS.index(owners[-1]) if same_axis else 0
        for name in FACTORS[first:]:
            if left[name]:
                left[name] -= 1
                yield from extend((*owners, name))
                left[name] += 1

    return extend(())


def _block(
    layout: ParallelLayout, topology: Topology, dimensions: Sequence[Dimension], owners: Sequence[str]
) -> list[int]:
    """Cores of one replica by position."""
    places = {
        name: _places(
            getattr(layout, name),
            [dimension for dimension, owner in zip(dimensions, owners, strict=True) if owner == name],
        )
        for name in FACTORS
    }
    return [
        _core([*tp, *ulysses, *ring, *cfg], topology)
        for cfg in places["cfg"]
        for ring in places["ring"]
        for ulysses in places["ulysses"]
        for tp in places["tp"]
    ]


def _places(degree: int, dimensions: Sequence[Dimension]) -> list[list[Dimension]]:
    """For each index of a factor, its dimensions of coordinate 1: offsets in binary, chips in Gray code."""
    offsets = sum(axis == -1 for axis, _ in dimensions)
    places = []
    for index in range(degree):
        chip, offset = divmod(index, 2**offsets)
        code = offset | (chip ^ chip >> 1) << offsets
        places.append([dimension for bit, dimension in enumerate(dimensions) if code >> bit & 1])
    return places


def _core(ones: Sequence[Dimension], topology: Topology) -> int:
    codes = {axis: sum(1 << bit for one, bit in ones if one == axis) for axis, _ in ones}
    core = codes.pop(-1, 0)
    for axis, code in codes.items():
        index = code ^ code >> 1  # on two bits the Gray code is its own inverse
        core += index * math.prod(topology.shape[axis + 1 :]) * topology.cores_per_chip
    return core


def _repeat(layout: ParallelLayout, block: Sequence[int]) -> tuple[int, ...]:
    """The replica's cores for every stage and replica: consecutive blocks, in the order of positions."""
    model = layout.tp * layout.cp
    order = []
    for dp in range(layout.dp):
        for cfg in range(layout.cfg):
            for pp in range(layout.pp):
                start = (dp * layout.pp + pp) * len(block)
                order += [start + core for core in block[cfg * model : (cfg + 1) * model]]
    return tuple(order)
