"""Live groups of a layout, on every rank of a named world."""

import pytest
import torch
import torch.distributed as dist

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.testing import simulated_rank


@pytest.mark.parametrize("layout", [ParallelLayout(2, 2, 2), ParallelLayout(3, 1, 2), ParallelLayout(1, 4)])
def test_groups_are_those_of_the_layout(layout):
    for rank in range(layout.world_size):
        with simulated_rank(rank, layout.world_size):
            context = new_parallel_context(layout, tp_reduce_dtype=torch.bfloat16)
            for name in ("tp", "cp", "cfg", "text_encoder"):
                group = getattr(context, name)
                assert group.name == name
                assert group.ranks == layout.group_of(name, rank)
                assert group.ranks[group.rank_in_group] == rank
                if group.size > 1:
                    assert tuple(dist.get_process_group_ranks(group.process_group)) == group.ranks
            assert context.text_encoder.process_group is context.tp.process_group
            assert context.tp_reduce_dtype == torch.bfloat16


def test_without_a_world_only_one_rank_fits():
    assert new_parallel_context(ParallelLayout()).tp.size == 1
    with pytest.raises(LayoutError, match="the world has 1"):
        new_parallel_context(ParallelLayout(tp=2))
