"""What the compiler is told about a group is what the live group is."""

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist

from omni_neuron.distributed.collectives import all_gather
from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import place
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.replica_groups import register_context, register_replica_groups
from omni_neuron.distributed.testing import run_ranks, simulated_rank
from omni_neuron.distributed.topology import instance
from omni_neuron.runtime import envs
from omni_neuron.runtime.adapter import get_adapter

NAMES = ("tp", "cp", "cfg", "text_encoder")
FACTORED = (*NAMES, "ulysses", "ring")
TRN2 = instance("trn2.48xlarge")


def live_groups(layout):
    context = new_parallel_context(layout)
    return {name: getattr(context, name).process_group for name in NAMES}


@pytest.mark.parametrize("rank", [0, 5, 7])
def test_the_whole_partition_is_registered_under_each_group_name(rank):
    layout = ParallelLayout(2, 2, 2)
    with simulated_rank(rank, 8):
        groups = live_groups(layout)
        register_replica_groups(layout, groups)
        for name in NAMES:
            assert get_adapter().replica_groups(groups[name].group_name) == tuple(layout.groups(name))


def test_dimensions_of_one_rank_need_no_group():
    layout = ParallelLayout(tp=1, cp=2)
    with simulated_rank(1, 2):
        cp = dist.new_group([0, 1])
        register_replica_groups(layout, {"cp": cp, "cfg": None, "tp": dist.new_group([1])})
        assert get_adapter().replica_groups(cp.group_name) == ((0, 1),)
    register_replica_groups(ParallelLayout(), {})


def test_live_groups_of_another_layout_are_refused_and_nothing_is_registered():
    layout = ParallelLayout(tp=2, cp=2)
    with simulated_rank(3, 4):
        groups = live_groups(layout)
        tp, cp = dist.new_group([2, 3]), dist.new_group([2, 3])
        get_adapter().register_replica_groups(tp.group_name, [(9,)])
        message = r"live cp group \(2, 3\) of rank 3 must hold the ranks \(1, 3\)"
        with pytest.raises(LayoutError, match=message):
            register_replica_groups(layout, {"tp": tp, "cp": cp})
        assert get_adapter().replica_groups(tp.group_name) == ((9,),)
        with pytest.raises(LayoutError, match=r"live tp group \(3,\)"):
            register_replica_groups(layout, {"cp": groups["cp"]})
        with pytest.raises(LayoutError, match="name='sp' must be"):
            register_replica_groups(layout, {**groups, "sp": cp})
        with pytest.raises(LayoutError, match="the world has 4"):
            register_replica_groups(ParallelLayout(tp=2), groups)


def registered(context, name):
    return get_adapter().replica_groups(getattr(context, name).group_name)


PLACED = [
    place(ParallelLayout(4, 8, 2), TRN2),
    place(ParallelLayout(8, 4, 2), TRN2),
    place(ParallelLayout(4, 8, 2, ulysses=4), TRN2),
    place(ParallelLayout(4, 16, ulysses=4, text_encoder="tp_cp"), TRN2),
]


@pytest.mark.parametrize("layout", PLACED, ids=str)
def test_64_ranks_register_what_they_use(layout):
    for rank in range(64):
        with simulated_rank(rank, 64):
            context = new_parallel_context(layout)
            register_context(layout, context)
            for name in FACTORED:
                group = getattr(context, name)
                if group.size > 1:
                    assert registered(context, name) == tuple(layout.groups(name))
                    assert group.ranks in registered(context, name)


def test_a_context_in_another_order_is_refused_and_nothing_is_registered():
    layout = place(ParallelLayout(4, 8, 2), TRN2)
    with simulated_rank(12, 64):
        context = new_parallel_context(layout)
        cp = context.cp
        in_order = tuple(sorted(cp.ranks))
        swapped = ParallelGroup("cp", in_order, in_order.index(12), cp.process_group)
        message = r"live cp group \(8, 12, 24, .*\) of rank 12 must hold the ranks \(12, 8, 28, "
        ring = ParallelGroup("ring", in_order, in_order.index(12), cp.process_group)
        with pytest.raises(LayoutError, match=message):
            register_context(layout, replace(context, cp=swapped, ring=ring))
        # Group names of a world that has gone are used again.
        get_adapter().register_replica_groups(context.tp.group_name, [(9,)])
        with pytest.raises(LayoutError, match=message):
            register_context(layout, replace(context, cp=swapped, ring=ring))
        assert registered(context, "tp") == ((9,),)
        with pytest.raises(LayoutError, match=r"live tp group \(12, 13, 14, 15\) of rank 12 must hold"):
            register_context(ParallelLayout(8, 4, 2), context)


def test_the_factors_of_context_parallelism_are_asked_for():
    layout = ParallelLayout(1, 4, ulysses=2)
    with simulated_rank(0, 4):
        context = new_parallel_context(layout)
        with pytest.raises(
            LayoutError, match=r"live ulysses group \(0,\) of rank 0 must hold the ranks \(0, 1\)"
        ):
            register_replica_groups(layout, {"cp": context.cp.process_group})
        groups = {name: getattr(context, name).process_group for name in ("cp", "ulysses", "ring")}
        register_replica_groups(layout, groups)
        assert registered(context, "ring") == ((0, 2), (1, 3))


def test_one_group_cannot_stand_for_two_partitions():
    layout = ParallelLayout(4, placement=[3, 2, 1, 0], vae=4)
    with simulated_rank(0, 4):
        tp = dist.new_group([0, 1, 2, 3])
        with pytest.raises(LayoutError, match="is part of two partitions"):
            register_replica_groups(layout, {"tp": tp, "vae": tp})
        register_replica_groups(layout, {"tp": tp, "vae": dist.new_group([0, 1, 2, 3])})


def test_two_sizes_place_the_layout_and_find_its_groups(monkeypatch):
    with simulated_rank(12, 64):
        context = new_parallel_context(place(ParallelLayout(4, 8, 2), TRN2))
        with pytest.raises(
            LayoutError, match=r"live cp group \(12,\) of rank 12 must hold the ranks \(0, 4, 8, "
        ):
            register_replica_groups(4, 8)
        monkeypatch.setenv(envs.platform_target_override.name, "trn2")
        register_replica_groups(4, 8)
        assert registered(context, "cp")[8 - 4] == (12, 8, 28, 24, 44, 40, 60, 56)
        assert (12, 8) not in registered(context, "cfg")
        assert (0, 12) in registered(context, "cfg")
        with pytest.raises(LayoutError, match="tp=4 x cp=3 x cfg=1 must divide the world of 64 ranks"):
            register_replica_groups(4, 3)


@pytest.mark.parametrize("arguments", [(4, {}), (ParallelLayout(), 8), ((4, 8), None)])
def test_a_size_beside_a_layout_or_its_groups_is_refused(arguments):
    with pytest.raises(TypeError, match="a layout and its groups by dimension, or two sizes"):
        register_replica_groups(*arguments)


ORDERS = {
    "descending": [7, 6, 5, 4, 3, 2, 1, 0],
    "interleaved": [6, 0, 4, 2, 1, 5, 3, 7],
}


def gathered_and_registered(rank, layouts):
    """For each dimension, the ranks in the order of their values, and the registered partition."""
    found = []
    for layout in layouts:
        context = new_parallel_context(layout)
        register_context(layout, context)
        for name in FACTORED:
            group = getattr(context, name)
            values = all_gather(torch.tensor([rank]), group, 0).tolist()
            found.append((tuple(values), registered(context, name) if group.size > 1 else None))
    return found


def test_live_and_registered_groups_have_one_order_over_gloo():
    layouts = [ParallelLayout(2, 4, ulysses=2, placement=order) for order in ORDERS.values()]
    for rank, found in enumerate(run_ranks(8, gathered_and_registered, layouts)):
        expected = [
            (layout.group_of(name, rank), tuple(layout.groups(name)))
            for layout in layouts
            for name in FACTORED
        ]
        for (arrived, partition), (group, groups) in zip(found, expected, strict=True):
            assert arrived == group
            assert partition == (groups if len(group) > 1 else None)
