"""Collectives over real gloo ranks, in list order."""

import torch
import torch.distributed as dist

from omni_neuron.distributed.collectives import all_gather, all_gather_stacked, all_reduce
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.testing import run_ranks

# Ascending, descending and interleaved partitions of four ranks.
PARTITIONS = [[(0, 1, 2, 3)], [(3, 2, 1, 0)], [(2, 0), (1, 3)], [(0, 2), (3, 1)], [(1, 3, 0, 2)]]


def groups_of(rank, partition):
    live = {ranks: dist.new_group(list(ranks)) for ranks in partition}
    mine = next(ranks for ranks in partition if rank in ranks)
    return ParallelGroup.from_process_group("cp", mine, live[mine])


def gather_everywhere(rank):
    results = []
    for partition in PARTITIONS:
        group = groups_of(rank, partition)
        mine = torch.full((2, 3), float(rank))
        results.append(
            (
                group.ranks,
                [all_gather(mine, group, dim) for dim in (0, 1, -1)],
                all_gather_stacked(mine, group),
                all_reduce(mine.bfloat16(), group),
                mine,
            )
        )
    return results


def test_collectives_follow_the_list_order_of_any_group():
    for rank, results in enumerate(run_ranks(4, gather_everywhere)):
        for ranks, (rows, columns, last), stacked, total, mine in results:
            shards = [torch.full((2, 3), float(member)) for member in ranks]
            assert torch.equal(rows, torch.cat(shards, 0))
            assert torch.equal(columns, torch.cat(shards, 1))
            assert torch.equal(last, columns)
            assert torch.equal(stacked, torch.stack(shards))
            assert torch.equal(total, torch.full((2, 3), float(sum(ranks)), dtype=torch.bfloat16))
            assert torch.equal(mine, torch.full((2, 3), float(rank))), "inputs must stay untouched"


def test_one_rank_is_the_identity():
    group = ParallelGroup.single("tp")
    x = torch.randn(2, 3)
    assert all_reduce(x, group) is x
    assert all_gather(x, group, 1) is x
    assert torch.equal(all_gather_stacked(x, group), x[None])
