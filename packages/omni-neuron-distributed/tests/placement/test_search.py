"""Placements for every layout of 1 to 64 ranks, and the important ones as literals."""

import itertools

import pytest

from omni_neuron.distributed.layout import GROUP_NAMES, ParallelLayout
from omni_neuron.distributed.placement import ROUTED_GROUPS, find_placement, offending_group, placements
from omni_neuron.distributed.topology import instance

TRN2 = instance("trn2.48xlarge")


def factorisations(number, factors):
    if factors == 1:
        yield (number,)
        return
    for first in (d for d in range(1, number + 1) if number % d == 0):
        for rest in factorisations(number // first, factors - 1):
            yield (first, *rest)


def every_layout():
    for world in range(1, 65):
        for tp, ulysses, ring, cfg, pp, dp in factorisations(world, 6):
            yield ParallelLayout(tp, ulysses * ring, cfg, dp, pp, ulysses=ulysses, ring=ring)


def passes_the_rule(group):
    """The published rule in other words than the package's."""
    cores = {(core // 16, core // 4 % 4, core % 4) for core in group}
    rows, columns, offsets = (sorted({core[axis] for core in cores}) for axis in range(3))
    rings = ([0, 1], [1, 2], [2, 3], [0, 3], [0, 1, 2, 3])
    whole = cores == set(itertools.product(rows, columns, offsets))
    return whole and all(len(axis) == 1 or axis in rings for axis in (rows, columns))


def is_power_of_two(number):
    return number & (number - 1) == 0


def test_every_layout_of_1_to_64_ranks():
    layouts = routed = 0
    for layout in every_layout():
        placement = find_placement(layout, TRN2)
        layouts += 1
        routed += placement is not None
        # A group of n takes k of 4 cores from each of 1, 2, 4, 8 or 16 chips. With an odd factor in n, k is
        # 3, for all groups of the dimension: a full chip cannot be filled, only a world of up to three.
        degrees = (layout.tp, layout.ulysses, layout.ring, layout.cfg)
        possible = layout.world_size <= 4 or all(map(is_power_of_two, degrees))
        assert (placement is not None) is possible, layout
        placed = layout.with_placement(placement)
        ranks = list(range(layout.world_size))
        for name in GROUP_NAMES:
            groups = placed.groups(name)
            size = getattr(layout, "tp" if name == "text_encoder" else name)
            assert {len(group) for group in groups} == {size}
            assert sorted(itertools.chain(*groups)) == ranks
            if possible and name in ROUTED_GROUPS:
                assert all(map(passes_the_rule, groups)), (layout, name)
    assert (layouts, routed) == (6656, 2192)


def test_every_decoder_group_of_1_to_64_ranks():
    for world in range(1, 65):
        for vae in (d for d in range(1, world + 1) if world % d == 0):
            layout = ParallelLayout(pp=world, vae=vae)
            groups = layout.groups("vae")
            assert groups == [tuple(range(first, first + vae)) for first in range(0, world, vae)]
            routes = all(map(passes_the_rule, groups))
            assert routes is (world <= 4 or is_power_of_two(vae))
            assert (offending_group(layout, TRN2) is None) is routes
            assert (find_placement(layout, TRN2) is not None) is routes


def blocks(*chips, offsets=(0, 1, 2, 3)):
    """Cores of whole chips, in the order of the chips."""
    return tuple(4 * chip + offset for chip in chips for offset in offsets)


SNAKE = (0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11, 15, 14, 13, 12)
TOP_HALF = (0, 1, 2, 3, 7, 6, 5, 4)
BOTTOM_HALF = (12, 13, 14, 15, 11, 10, 9, 8)


@pytest.mark.parametrize(
    ("layout", "placement"),
    [
        (ParallelLayout(4, 16), blocks(*SNAKE)),
        (ParallelLayout(4, 16, ulysses=4), tuple(range(64))),
        (ParallelLayout(4, 16, ulysses=2), blocks(0, 1, 3, 2, 7, 6, 4, 5, 8, 9, 11, 10, 15, 14, 12, 13)),
        (ParallelLayout(4, 8, 2), blocks(*TOP_HALF, *BOTTOM_HALF)),
        (ParallelLayout(4, 8, 2, ulysses=2), blocks(0, 1, 3, 2, 7, 6, 4, 5, 12, 13, 15, 14, 11, 10, 8, 9)),
        (ParallelLayout(4, 8, 2, ulysses=4), blocks(*range(8), *range(12, 16), *range(8, 12))),
        (ParallelLayout(4, 8, 2, ulysses=8), blocks(*TOP_HALF, *BOTTOM_HALF)),
        (ParallelLayout(8, 4, 2), blocks(0, 1, 3, 2, 7, 6, 4, 5, 12, 13, 15, 14, 11, 10, 8, 9)),
        (ParallelLayout(8, 8), blocks(0, 1, 3, 2, 7, 6, 4, 5, 8, 9, 11, 10, 15, 14, 12, 13)),
        (ParallelLayout(2, 32), blocks(*SNAKE)),
        (ParallelLayout(2, 16, 2), blocks(*TOP_HALF, *BOTTOM_HALF)),
        (ParallelLayout(16, 4), tuple(range(64))),
        (ParallelLayout(16, 2, 2), blocks(*range(8), *range(12, 16), *range(8, 12))),
        (ParallelLayout(1, 64), blocks(*SNAKE)),
        (ParallelLayout(4, 4), tuple(range(16))),
        (ParallelLayout(8, cfg=2), blocks(0, 1, 3, 2)),
        (ParallelLayout(2, 2, 2, dp=3), tuple(range(24))),
    ],
    ids=str,
)
def test_chosen_placements(layout, placement):
    assert find_placement(layout, TRN2) == placement


def test_chosen_groups_of_the_ulysses_layout():
    layout = ParallelLayout(4, 8, 2, ulysses=2)
    layout = layout.with_placement(find_placement(layout, TRN2))
    assert layout.group_of("tp", 30) == (28, 29, 30, 31)
    assert layout.group_of("ulysses", 29) == (29, 25)
    assert layout.group_of("ring", 29) == (1, 13, 29, 17)
    assert layout.group_of("cp", 29) == (1, 5, 13, 9, 29, 25, 17, 21)
    assert layout.group_of("cfg", 29) == (29, 45)


def test_members_of_a_ring_are_neighbours_all_around():
    machines = (TRN2, instance("trn2.48xlarge", lnc=1), instance("trn2-ultraserver"))
    shapes = [
        (4, 1, 16, 1),
        (4, 2, 8, 1),
        (4, 2, 4, 2),
        (2, 4, 8, 1),
        (1, 1, 64, 1),
        (8, 1, 8, 1),
        (2, 1, 16, 2),
    ]
    for machine, (tp, ulysses, ring, cfg) in itertools.product(machines, shapes):
        layout = ParallelLayout(tp, ulysses * ring, cfg, ulysses=ulysses)
        layout = layout.with_placement(find_placement(layout, machine))
        for name in ("tp", "ulysses", "ring", "cfg"):
            for group in layout.groups(name):
                chips = [machine.chip_of(core) for core in group]
                assert all(
                    machine.hops(a, b) <= 1 for a, b in zip(chips, [*chips[1:], chips[0]], strict=True)
                )


def test_all_placements_of_a_layout_are_distinct_and_route():
    found = list(placements(ParallelLayout(4, 4, 2, ulysses=2), TRN2))
    # Five dimensions of 32 cores, two of them for tp: 60 assignments, of which 18 are no mirror images.
    assert len(found) == len(set(found)) == 18
    for placement in found:
        layout = ParallelLayout(4, 4, 2, ulysses=2, placement=placement)
        for name in ROUTED_GROUPS:
            assert all(map(passes_the_rule, layout.groups(name)))


def test_other_machines():
    arithmetic = tuple(range(24))
    assert find_placement(ParallelLayout(3, 8), instance("inf2.48xlarge")) == arithmetic
    assert find_placement(ParallelLayout(3, 8), instance("trn3")) == arithmetic
    assert find_placement(ParallelLayout(8, 32, dp=2), TRN2) is None
    ultraserver = instance("trn2-ultraserver")
    layout = ParallelLayout(8, 16, 2, ulysses=4)
    placed = layout.with_placement(find_placement(layout, ultraserver))
    assert offending_group(placed, ultraserver) is None
    assert offending_group(layout, ultraserver) is not None


def test_the_stages_of_a_replica_lie_side_by_side():
    layout = ParallelLayout(4, dp=2, pp=2)
    placement = find_placement(layout, TRN2)
    assert [sorted(placement[start : start + 8]) for start in (0, 8)] == [list(range(8)), list(range(8, 16))]
