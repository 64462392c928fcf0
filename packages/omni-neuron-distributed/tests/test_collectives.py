"""Collectives give list order: over real ranks, on 64 simulated ones, and where a device follows the list."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from omni_neuron.distributed import collectives
from omni_neuron.distributed.collectives import (
    all_gather,
    all_gather_stacked,
    all_reduce,
    all_to_all,
    broadcast,
    finish_permute,
    permute,
    reduce_scatter,
    start_permute,
)
from omni_neuron.distributed.errors import LayoutError, ShardingError
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.process_groups import new_parallel_group
from omni_neuron.distributed.simulation import simulate_groups, simulate_ranks
from omni_neuron.distributed.testing import run_ranks

# Ascending, descending and interleaved partitions of eight ranks.
PARTITIONS = [
    [(0, 1, 2, 3, 4, 5, 6, 7)],
    [(7, 6, 5, 4, 3, 2, 1, 0)],
    [(3, 5, 0, 6, 2, 7, 1, 4)],
    [(3, 2, 1, 0), (4, 5, 6, 7)],
    [(6, 0, 4, 2), (1, 5, 3, 7)],
    [(4, 0), (1, 5), (6, 2), (3, 7)],
]
# The columns of the published trn2 mesh of 64 ranks; half of them do not ascend.
COLUMNS = [
    (0, 4, 16, 20, 32, 36, 48, 52),
    (1, 5, 17, 21, 33, 37, 49, 53),
    (2, 6, 18, 22, 34, 38, 50, 54),
    (3, 7, 19, 23, 35, 39, 51, 55),
    (12, 8, 28, 24, 44, 40, 60, 56),
    (13, 9, 29, 25, 45, 41, 61, 57),
    (14, 10, 30, 26, 46, 42, 62, 58),
    (15, 11, 31, 27, 47, 43, 63, 59),
]
DTYPES = (torch.float32, torch.bfloat16)


def value_of(rank, size, dtype):
    """``[2 * size, size, 3]`` of small integers, exact in every dtype and unlike any other rank's."""
    return (torch.arange(2 * size * size * 3).reshape(2 * size, size, 3) % 7 + 3 * rank).to(dtype)


def check_collectives(group):
    """Every collective of one rank against what the whole list's values make of it."""
    size, here = group.size, group.rank_in_group
    for dtype in DTYPES:
        values = [value_of(rank, size, dtype) for rank in group.ranks]
        mine = values[here].clone()
        total = torch.stack(values).sum(0)
        assert torch.equal(all_reduce(mine, group), total)
        assert torch.equal(all_gather_stacked(mine, group), torch.stack(values))
        for dim in (0, 1, -1):
            assert torch.equal(all_gather(mine, group, dim), torch.cat(values, dim))
        for dim in (0, 1, -2):
            assert torch.equal(reduce_scatter(mine, group, dim), total.chunk(size, dim)[here])
        for split_dim, join_dim in ((0, 1), (1, 0), (0, 0), (1, -1), (-2, 2)):
            parts = [value.chunk(size, split_dim)[here] for value in values]
            assert torch.equal(all_to_all(mine, group, split_dim, join_dim), torch.cat(parts, join_dim))
        for shift in (1, -1, size + 2, 0):
            assert torch.equal(permute(mine, group, shift), values[(here - shift) % size])
        two = [start_permute(mine, group, 1), start_permute(mine > 4, group, -1)]
        behind, ahead = (finish_permute(pending, group) for pending in two)
        assert torch.equal(behind, values[here - 1])
        assert torch.equal(ahead, values[(here + 1) % size] > 4)
        for source in range(size):
            assert torch.equal(broadcast(mine, group, source), values[source])
        assert torch.equal(mine, values[here]), "inputs must stay untouched"
    return True


def check_partitions(rank):
    for partition in PARTITIONS:
        check_collectives(new_parallel_group("cp", partition))
    return rank


def test_eight_real_ranks_follow_the_list_of_any_group():
    assert run_ranks(8, check_partitions) == list(range(8))


def simulated(partition, *, list_order=False):
    world_size = sum(map(len, partition))
    groups = simulate_groups(world_size, lambda: new_parallel_group("cp", partition))
    with pytest.MonkeyPatch.context() as patch:
        if list_order:
            patch.setattr(collectives, "_in_list_order", lambda *arguments: True)
        return simulate_ranks(groups, check_collectives, list_order=list_order)


@pytest.mark.parametrize("list_order", [False, True])
def test_sixty_four_ranks_of_the_trn2_mesh(list_order):
    assert simulated(COLUMNS, list_order=list_order) == [True] * 64


@settings(max_examples=20)
@given(order=st.permutations(range(8)), size=st.sampled_from([2, 4, 8]), list_order=st.booleans())
def test_any_partition_in_either_order(order, size, list_order):
    partition = [tuple(order[start : start + size]) for start in range(0, 8, size)]
    assert all(simulated(partition, list_order=list_order))


class Issued(TorchDispatchMode):
    """Arguments of the collectives on meta tensors, which stand for a device's."""

    def __init__(self, log):
        super().__init__()
        self.log = log

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "_c10d_functional" and "wait" not in func.name():
            self.log.append(args)
        return args[0] if func.namespace == "_c10d_functional" else func(*args, **(kwargs or {}))


def test_on_a_device_neighbours_and_sources_are_list_positions():
    groups = simulate_groups(4, lambda: new_parallel_group("cp", [(2, 0, 3, 1)]))
    for device, neighbours, source in (("meta", (2, 0), 2), ("cpu", (3, 2), 3)):
        log = []
        with Issued(log):
            x = torch.ones(1, device=device)
            permute(x, groups[0], 1)  # rank 0 is at position 1: it sends to rank 3, from rank 2
            broadcast(x, groups[0], 2)
        (_, receives, sends, _), (_, position, _) = log
        assert (sends.index(1), receives.index(1)) == neighbours
        assert position == source


def test_one_rank_is_the_identity():
    group = ParallelGroup.single("tp")
    x = torch.randn(2, 3)
    assert all_reduce(x, group) is x
    assert all_gather(x, group, 1) is x
    assert reduce_scatter(x, group, 1) is x
    assert all_to_all(x, group, 0, 1) is x
    assert permute(x, group, 1) is x
    assert broadcast(x, group, 0) is x
    assert torch.equal(all_gather_stacked(x, group), x[None])


def test_parts_that_do_not_exist_are_refused():
    group = simulate_groups(4, lambda: new_parallel_group("cp", [(0, 1, 2, 3)]))[0]
    with pytest.raises(ShardingError, match="dimension 1=6 must be divisible by cp=4"):
        all_to_all(torch.zeros(4, 6), group, 1, 0)
    with pytest.raises(ShardingError, match="dimension -1=6 must be divisible by cp=4"):
        reduce_scatter(torch.zeros(4, 6), group, -1)
    for source in (-1, 4):
        with pytest.raises(LayoutError, match=rf"source={source} must be a position in the cp group, 0\.\.3"):
            broadcast(torch.zeros(2), group, source)
