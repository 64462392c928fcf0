import pytest

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import place
from omni_neuron.distributed.planner.links import seconds_per_byte
from omni_neuron.distributed.topology import instance

TRN2 = instance("trn2.48xlarge")
ON_CHIP = 2900 / 4 / 4


def gb_per_s(groups, pattern, topology=TRN2):
    return 1e-9 / seconds_per_byte(topology, tuple(groups), pattern)


def test_published_groups():
    """Layout B: rows on two chips share one link each way, columns share two links with three others."""
    layout = place(ParallelLayout(8, 4, 2), TRN2)
    assert gb_per_s(layout.groups("tp"), "ring") == pytest.approx(128)
    assert gb_per_s(layout.groups("cp"), "ring") == pytest.approx(64)
    assert gb_per_s(layout.groups("cfg"), "ring") == pytest.approx(32)


def test_a_rectangle_of_eight_chips_is_walked_in_a_closed_line_whatever_its_list_order():
    layout = place(ParallelLayout(4, 8, 2), TRN2)
    assert gb_per_s(layout.groups("cp"), "ring") == pytest.approx(64)


def test_within_a_chip_memory_sets_the_pace():
    groups = [tuple(range(first, first + 4)) for first in range(0, 64, 4)]
    assert gb_per_s(groups, "ring") == pytest.approx(ON_CHIP)


def test_within_its_chips_a_ring_around_a_row_is_slower_than_between_them():
    """Each of the links between chips carries half of what a core passes on to the next one of its chip."""
    rows = [tuple(range(first, first + 16)) for first in range(0, 64, 16)]
    assert gb_per_s(rows, "ring") == pytest.approx(ON_CHIP)


def test_all_to_all_along_a_row():
    """Each of four cores sends a third to either neighbour and a third two hops, half of it each way."""
    groups = [
        tuple(4 * (4 * row + column) + core for column in range(4)) for row in range(4) for core in range(4)
    ]
    assert gb_per_s(groups, "all-to-all") == pytest.approx(128 / (4 * (1 / 3 + 2 * 1 / 3 / 2)))


def test_exchanges_go_one_way_in_the_order_of_the_group():
    along = [
        tuple(4 * (4 * row + column) + core for column in range(4)) for row in range(4) for core in range(4)
    ]
    assert gb_per_s(along, "exchange") == pytest.approx(32)
    by_chip, alternating = [(0, 2, 16, 18), (1, 3, 17, 19)], [(0, 16, 2, 18), (1, 17, 3, 19)]
    assert gb_per_s(by_chip, "exchange") == pytest.approx(64)
    assert gb_per_s(alternating, "exchange") == pytest.approx(32)


def test_fewer_talkers_share_a_link_with_fewer():
    assert gb_per_s([(0, 4, 8, 12)], "ring") == pytest.approx(256)


def test_a_switch_takes_one_hop_and_a_host_no_time():
    trn3 = instance("trn3")
    groups = [tuple(range(core, 64, 4)) for core in range(4)]
    assert gb_per_s(groups, "ring", trn3) == pytest.approx(1024 / 4)
    assert seconds_per_byte(instance("cpu"), ((0, 1, 2),), "ring") == 0


def test_single_ranks_send_nothing():
    assert seconds_per_byte(TRN2, ((0,), (1,)), "ring") == 0
