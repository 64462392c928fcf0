"""What the compiler is told about a group is what the live group is."""

import pytest
import torch.distributed as dist

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.replica_groups import register_replica_groups
from omni_neuron.distributed.testing import simulated_rank
from omni_neuron.runtime.adapter import get_adapter

NAMES = ("tp", "cp", "cfg", "text_encoder")


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
