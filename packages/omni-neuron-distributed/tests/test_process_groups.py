"""Live groups of a layout, on every rank of a named world."""

import pytest
import torch
import torch.distributed as dist

from omni_neuron.distributed.collectives import all_gather
from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import place
from omni_neuron.distributed.process_groups import new_parallel_context, new_parallel_group
from omni_neuron.distributed.simulation import simulate_groups, simulate_ranks
from omni_neuron.distributed.testing import simulated_rank
from omni_neuron.distributed.topology import instance

LAYOUTS = [
    ParallelLayout(2, 2, 2),
    ParallelLayout(3, 1, 2),
    ParallelLayout(1, 4),
    ParallelLayout(2, 4, ulysses=4),
    ParallelLayout(2, 4, ulysses=2, text_encoder="tp_cp"),
    ParallelLayout(1, 4, 2, ulysses=2, placement=[7, 6, 5, 4, 0, 2, 1, 3]),
]
NAMES = ("tp", "cp", "cfg", "text_encoder", "ulysses", "ring")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_groups_are_those_of_the_layout(layout):
    for rank in range(layout.world_size):
        with simulated_rank(rank, layout.world_size):
            context = new_parallel_context(layout, tp_reduce_dtype=torch.bfloat16)
            for name in NAMES:
                group = getattr(context, name)
                assert group.name == name
                assert group.ranks == layout.group_of(name, rank)
                assert group.ranks[group.rank_in_group] == rank
                if group.size > 1:
                    live = dist.get_process_group_ranks(group.process_group)
                    assert live == sorted(group.ranks)
            if layout.text_encoder == "tp":
                assert context.text_encoder.process_group is context.tp.process_group
            for factor in (context.ulysses, context.ring):
                if factor.size == context.cp.size:
                    assert factor.process_group is context.cp.process_group
            assert context.tp_reduce_dtype == torch.bfloat16


def test_without_a_world_only_one_rank_fits():
    assert new_parallel_context(ParallelLayout()).tp.size == 1
    with pytest.raises(LayoutError, match="the world has 1"):
        new_parallel_context(ParallelLayout(tp=2))


@pytest.mark.parametrize("partition", [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (2,)], [(0, 1, 2, 3)]])
def test_a_partition_that_some_rank_would_wait_for_is_refused(partition):
    with (
        simulated_rank(2, 3),
        pytest.raises(LayoutError, match=r"tp partition .* each of 3 ranks once"),
    ):
        new_parallel_group("tp", partition)


def gathered_over_every_dimension(context, ranks):
    mine = torch.tensor([ranks[context.cp.rank_in_group]])
    return {name: all_gather(mine, getattr(context, name), 0).tolist() for name in ("cp", "ulysses", "ring")}


def test_64_placed_ranks_meet_in_the_order_of_their_groups():
    layout = place(ParallelLayout(4, 8, 2, ulysses=2), instance("trn2.48xlarge"))
    contexts = simulate_groups(64, lambda: new_parallel_context(layout))
    results = simulate_ranks(contexts, gathered_over_every_dimension, range(8))
    for rank, result in enumerate(results):
        here = layout.coordinates(rank)
        assert result["cp"] == list(range(8))
        assert result["ulysses"] == [2 * here.ring, 2 * here.ring + 1]
        assert result["ring"] == [here.ulysses + 2 * step for step in range(4)]
