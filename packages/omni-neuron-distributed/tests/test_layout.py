"""The arithmetic layout against literals and against the formula of its coordinates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import ParallelLayout

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
