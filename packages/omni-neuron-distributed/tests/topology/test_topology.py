"""Chips, links and the rule for replica groups: literals of the 4 x 4 torus, properties of every machine."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.topology import INSTANCES, instance

TRN2 = instance("trn2.48xlarge")
TORI = [TRN2, instance("trn2.48xlarge", lnc=1), instance("trn2-ultraserver")]
MACHINES = [*(instance(name) for name in INSTANCES), TORI[1]]

machines = st.sampled_from(MACHINES)
tori = st.sampled_from(TORI)


def chip_of(machine):
    return st.integers(0, machine.chips - 1)


def test_ranks_and_chips_of_one_trn2():
    assert (TRN2.cores, TRN2.chips, TRN2.cores_per_chip) == (64, 16, 4)
    assert [TRN2.chip_of(core) for core in (0, 3, 4, 63)] == [0, 0, 1, 15]
    assert [TRN2.offset_of(core) for core in (0, 3, 4, 63)] == [0, 3, 0, 3]
    assert TRN2.neighbours(0) == (1, 3, 4, 12)
    assert TRN2.neighbours(5) == (1, 4, 6, 9)
    assert TRN2.position_of(6) == (1, 2)
    assert [TRN2.hops(0, chip) for chip in range(16)] == [0, 1, 2, 1, 1, 2, 3, 2, 2, 3, 4, 3, 1, 2, 3, 2]


def test_an_ultraserver_joins_the_chips_of_one_coordinate():
    machine = instance("trn2-ultraserver")
    assert machine.neighbours(0) == (1, 3, 4, 12, 16, 48)
    assert machine.hops(0, 32) == 2
    assert machine.is_ring([5, 21, 37, 53])
    assert machine.is_rectangle([0, 1, 16, 17])


@pytest.mark.parametrize(
    ("chips", "ring", "rectangle"),
    [
        ([7], True, True),
        ([0, 1], True, True),
        ([3, 0], True, True),
        ([0, 12], True, True),
        ([0, 2], False, False),
        ([0, 8], False, False),
        ([0, 5], False, False),
        ([0, 1, 2], False, False),
        ([4, 5, 6, 7], True, True),
        ([2, 14, 6, 10], True, True),
        ([0, 3, 12, 15], False, True),
        ([0, 1, 4, 6], False, False),
        ([0, 1, 8, 9], False, False),
        (range(8), False, True),
        (range(12), False, False),
        (range(16), False, True),
        ([], False, False),
    ],
)
def test_rings_and_rectangles_of_the_torus(chips, ring, rectangle):
    assert TRN2.is_ring(chips) is ring
    assert TRN2.is_rectangle(chips) is rectangle


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        ([0, 32], "its chips [0, 8] are no ring or rectangle of rings on the 4 x 4 torus"),
        ([0, 4, 8], "its chips [0, 1, 2] are no ring or rectangle of rings on the 4 x 4 torus"),
        (
            [0, 1, 4, 6],
            "its chips [0, 1] contribute different cores, [0, 1] of chip 0 and [0, 2] of chip 1",
        ),
        ([3, 4], "its chips [0, 1] contribute different cores, [3] of chip 0 and [0] of chip 1"),
        ([2, 0, 1], None),
        ([12, 8, 28, 24, 44, 40, 60, 56], None),
        ([0, 4, 8, 12], None),
        (range(64), None),
    ],
)
def test_why_a_group_does_not_route(group, reason):
    assert TRN2.why_not(group) == reason
    assert TRN2.routes(group) is (reason is None)


def test_where_no_rule_is_known_every_group_routes():
    for name in ("trn3", "trn1.32xlarge", "inf2.48xlarge", "cpu"):
        assert instance(name).routes([0, 5, 18])
    for name in ("trn3", "trn1.32xlarge", "inf2.48xlarge"):
        assert instance(name).caution
    trn3 = instance("trn3")
    assert (trn3.hops(0, 9), trn3.hops(4, 4), len(trn3.neighbours(0))) == (1, 0, 15)
    assert trn3.is_ring([0, 5, 9])
    assert not trn3.is_rectangle([])


def test_cores_and_chips_must_exist():
    for core in (-1, 64):
        with pytest.raises(LayoutError, match=rf"core={core} must lie in 0\.\.63 on trn2\.48xlarge"):
            TRN2.routes([0, core])
    with pytest.raises(LayoutError, match=r"chip=16 must lie in 0\.\.15"):
        TRN2.is_ring([0, 16])
    with pytest.raises(LayoutError, match=r"chip=16 must lie in 0\.\.15 on trn3"):
        instance("trn3").is_ring([16])


@given(machines.flatmap(lambda machine: st.tuples(st.just(machine), *[chip_of(machine)] * 3)))
def test_hops_are_a_distance_and_neighbours_are_one_apart(drawn):
    machine, a, b, c = drawn
    assert machine.hops(a, b) == machine.hops(b, a)
    assert (machine.hops(a, b) == 0) is (a == b)
    assert machine.hops(a, c) <= machine.hops(a, b) + machine.hops(b, c)
    assert (b in machine.neighbours(a)) is (machine.hops(a, b) == 1)


@given(tori.flatmap(lambda machine: st.tuples(st.just(machine), st.lists(chip_of(machine), max_size=20))))
def test_the_rule_knows_no_order_and_no_origin(drawn):
    machine, chips = drawn
    verdict = machine.is_rectangle(chips)
    assert machine.is_rectangle(chips[::-1]) is verdict

    def moved(chip):
        position = [(index + 1) % 4 for index in machine.position_of(chip)]
        return next(c for c in range(machine.chips) if list(machine.position_of(c)) == position)

    assert machine.is_rectangle([moved(chip) for chip in chips]) is verdict


@st.composite
def rectangles(draw):
    machine = draw(tori)
    axis = st.one_of(
        st.integers(0, 3).map(lambda index: [index]),
        st.integers(0, 3).map(lambda index: [index, (index + 1) % 4]),
        st.just([0, 1, 2, 3]),
    )
    sets = [draw(axis) for _ in machine.shape]
    chips = [
        c
        for c in range(machine.chips)
        if all(i in s for i, s in zip(machine.position_of(c), sets, strict=True))
    ]
    offsets = draw(st.sets(st.integers(0, machine.cores_per_chip - 1), min_size=1))
    group = [chip * machine.cores_per_chip + offset for chip, offset in itertools.product(chips, offsets)]
    return machine, chips, draw(st.permutations(group))


@given(rectangles(), st.data())
def test_equal_offsets_on_a_rectangle_route_until_one_core_is_lost(drawn, data):
    machine, chips, group = drawn
    assert machine.is_rectangle(chips)
    assert machine.routes(group)
    if len(chips) > 1:
        lost = data.draw(st.sampled_from(group))
        rest = [core for core in group if core != lost]
        # What is left of two chips with one core each is one chip; of three of four in a line, a path.
        assert machine.routes(rest) is (len(group) == 2)
