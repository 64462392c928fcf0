"""The arithmetic layout against literals and against the formula of its coordinates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import Coordinates, ParallelLayout

degrees = st.integers(1, 4)


def test_eight_ranks_as_literals():
    layout = ParallelLayout(tp=2, cp=2, cfg=2)
    assert layout.world_size == 8
    assert layout.groups("tp") == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert layout.groups("text_encoder") == layout.groups("tp")
    assert layout.groups("cp") == [(0, 2), (1, 3), (4, 6), (5, 7)]
    assert layout.groups("cfg") == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert layout.group_of("cp", 6) == (4, 6)
    assert layout.coordinates(6)[:3] == (0, 1, 1)


def test_published_arithmetic_groups_of_64_cores():
    layout = ParallelLayout(tp=4, cp=8, cfg=2)
    assert layout.groups("tp") == [tuple(range(4 * i, 4 * i + 4)) for i in range(16)]
    assert layout.groups("cp") == [
        tuple(32 * half + t + 4 * c for c in range(8)) for half in range(2) for t in range(4)
    ]
    assert layout.groups("cfg") == [(b, b + 32) for b in range(32)]


@given(degrees, degrees, degrees)
def test_groups_partition_the_world_and_meet_the_rank_formula(tp, cp, cfg):
    layout = ParallelLayout(tp, cp, cfg)
    for name, axis in (("tp", 0), ("cp", 1), ("cfg", 2)):
        groups = layout.groups(name)
        assert sorted(rank for group in groups for rank in group) == list(range(layout.world_size))
        for group in groups:
            for index, rank in enumerate(group):
                coordinates = layout.coordinates(rank)
                assert coordinates[axis] == index
                tp_index, cp_index, cfg_index = coordinates[:3]
                assert rank == cfg_index * (tp * cp) + cp_index * tp + tp_index
                assert layout.group_of(name, rank) == group


@pytest.mark.parametrize("value", [0, -1, 2.0, "2", True, None])
def test_degrees_are_integers_of_at_least_one(value):
    with pytest.raises(LayoutError, match=r"cp=.* must be an integer of at least 1"):
        ParallelLayout(cp=value)


def test_the_world_must_be_filled():
    layout = ParallelLayout(tp=2, cp=3)
    layout.check_world_size(6)
    with pytest.raises(LayoutError, match="tp=2 x cp=3 x cfg=1 = 6 ranks, but the world has 8"):
        layout.check_world_size(8)


def test_unknown_dimension_and_rank():
    layout = ParallelLayout(tp=2)
    with pytest.raises(LayoutError, match="name='sp' must be"):
        layout.groups("sp")
    for rank in (-1, 2):
        with pytest.raises(LayoutError, match=f"rank={rank} must lie in 0..1"):
            layout.group_of("tp", rank)


def test_a_placement_names_the_rank_at_each_position():
    layout = ParallelLayout(2, 2, 2, placement=[5, 4, 7, 6, 0, 1, 3, 2])
    assert layout.groups("tp") == [(5, 4), (7, 6), (0, 1), (3, 2)]
    assert layout.groups("cp") == [(5, 7), (4, 6), (0, 3), (1, 2)]
    assert layout.groups("cfg") == [(5, 0), (4, 1), (7, 3), (6, 2)]
    assert layout.coordinates(6) == (1, 1, 0, 0, 0, 0, 1)
    assert layout.with_placement(None) == ParallelLayout(2, 2, 2)
    # The decoder does not care who held which part of the model.
    assert ParallelLayout(2, 2, 2, vae=4, placement=layout.placement).groups("vae") == [
        (0, 1, 2, 3),
        (4, 5, 6, 7),
    ]


def test_the_arithmetic_placement_may_be_asked_for():
    asked = ParallelLayout(2, 2, placement=range(4))
    assert asked.placement == (0, 1, 2, 3)
    assert ParallelLayout(2, 2).placement is None
    assert all(asked.groups(name) == ParallelLayout(2, 2).groups(name) for name in ("tp", "cp", "vae"))


def test_all_dimensions_of_48_ranks_as_literals():
    layout = ParallelLayout(tp=2, cp=4, cfg=2, dp=1, pp=3, ulysses=2, vae=8)
    assert layout.group_of("ulysses", 29) == (29, 31)
    assert layout.group_of("ring", 29) == (25, 29)
    assert layout.group_of("cp", 29) == (25, 27, 29, 31)
    assert layout.group_of("pp", 29) == (29, 37, 45)
    assert layout.group_of("cfg", 29) == (5, 29)
    assert layout.group_of("dp", 29) == (29,)
    assert layout.group_of("vae", 29) == tuple(range(24, 32))
    assert layout.coordinates(29) == Coordinates(tp=1, cp=2, cfg=1, pp=0, dp=0, ulysses=0, ring=1)


def test_replicas_of_data_parallelism_decode_for_themselves():
    layout = ParallelLayout(2, dp=2, vae=2, placement=[0, 2, 1, 3])
    assert layout.groups("vae") == [(0, 2), (1, 3)]
    assert layout.groups("dp") == [(0, 1), (2, 3)]


def test_the_text_encoder_takes_the_group_it_is_given():
    assert ParallelLayout(2, 2, 2).groups("text_encoder") == ParallelLayout(2, 2, 2).groups("tp")
    wide = ParallelLayout(2, 2, 2, text_encoder="tp_cp")
    assert wide.groups("text_encoder") == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert ParallelLayout(2, 2, text_encoder="world").groups("text_encoder") == [(0, 1, 2, 3)]


@pytest.mark.parametrize(
    ("arguments", "factors"),
    [
        ({"cp": 8}, (1, 8)),
        ({"cp": 8, "ulysses": 2}, (2, 4)),
        ({"cp": 8, "ring": 2}, (4, 2)),
        ({"cp": 8, "ulysses": 8, "ring": 1}, (8, 1)),
        ({}, (1, 1)),
    ],
)
def test_a_missing_factor_of_context_parallelism_follows(arguments, factors):
    layout = ParallelLayout(**arguments)
    assert (layout.ulysses, layout.ring) == factors
    assert layout == ParallelLayout(cp=layout.cp, ulysses=layout.ulysses, ring=layout.ring)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cp": 8, "ulysses": 3}, r"ulysses=3 x ring=2 must be cp=8: set cp=6 or other factors\."),
        ({"cp": 8, "ulysses": 2, "ring": 2}, "ulysses=2 x ring=2 must be cp=8"),
        ({"ulysses": 2}, "ulysses=2 x ring=1 must be cp=1: set cp=2 or other factors"),
        ({"cp": 2, "ring": 0}, "ring=0 must be an integer of at least 1"),
        ({"tp": 4, "vae": 3}, "vae=3 must divide the 4 ranks of a replica of tp=4 x cp=1 x cfg=1"),
        ({"tp": 2, "dp": 2, "vae": 4}, "vae=4 must divide the 2 ranks of a replica"),
        ({"tp": 2, "placement": [0, 0]}, r"placement of .* each rank of 0\.\.1 once, not \[0, 0\]"),
        ({"tp": 2, "placement": [1, 0, 2]}, "must hold each rank"),
        ({"text_encoder": "cp"}, "text_encoder='cp' must be one of tp, tp_cp, world"),
    ],
)
def test_contradictions_are_refused(arguments, message):
    with pytest.raises(LayoutError, match=message):
        ParallelLayout(**arguments)


def test_a_layout_reads_as_its_degrees():
    assert str(ParallelLayout(4, 8, 2)) == "tp=4 x cp=8 x cfg=2"
    full = ParallelLayout(2, 4, 1, dp=2, pp=3, ulysses=2, vae=2)
    assert str(full) == "tp=2 x cp=4 x cfg=1 x dp=2 x pp=3 (ulysses=2 x ring=2), vae=2"


@given(st.data())
def test_placed_groups_partition_the_world_and_meet_the_coordinates(data):
    tp, ulysses, ring, cfg, pp, dp = (data.draw(st.integers(1, 3)) for _ in range(6))
    world = tp * ulysses * ring * cfg * pp * dp
    placement = data.draw(st.permutations(range(world)))
    layout = ParallelLayout(tp, ulysses * ring, cfg, dp, pp, ulysses=ulysses, placement=placement)
    for name in ("tp", "ulysses", "ring", "cp", "pp", "cfg", "dp"):
        groups = layout.groups(name)
        assert sorted(rank for group in groups for rank in group) == list(range(world))
        group = data.draw(st.sampled_from(groups))
        places = [layout.coordinates(rank)._asdict() for rank in group]
        assert [place.pop(name) for place in places] == list(range(getattr(layout, name)))
        related = {"cp": {"ulysses", "ring"}, "ulysses": {"cp"}, "ring": {"cp"}}.get(name, set())
        fixed = [{key: index for key, index in place.items() if key not in related} for place in places]
        assert all(place == fixed[0] for place in fixed)


def test_a_layout_without_placement_costs_nothing_however_many_ranks_it_has():
    assert ParallelLayout(cp=10**12).placement is None


def test_other_ranks_have_all_degrees_of_the_layout():
    layout = ParallelLayout(2, 8, 2, dp=3, pp=2, ulysses=4, vae=8, text_encoder="world")
    backwards = layout.with_placement(range(layout.world_size)[::-1])
    assert backwards.placement is not None
    assert backwards.with_placement(None) == layout
