"""Threads as ranks: results by rank, one error, no endless wait."""

import threading
import time

import pytest
import torch

from omni_neuron.distributed.collectives import (
    all_gather,
    all_gather_stacked,
    all_reduce,
    broadcast,
    permute,
)
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.process_groups import new_parallel_context, new_parallel_group
from omni_neuron.distributed.simulation import SimulationError, simulate_groups, simulate_ranks


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def both_groups(context, factor):
    rank = torch.tensor([float(context.cp.ranks[context.cp.rank_in_group])])
    return all_gather(rank, context.cp, 0).tolist(), all_reduce(factor * rank, context.tp).item()


def test_every_group_of_a_layout_exchanges_its_own_values():
    layout = ParallelLayout(tp=2, cp=4)
    contexts = simulate_groups(8, lambda: new_parallel_context(layout))
    for rank, (gathered, total) in enumerate(simulate_ranks(contexts, both_groups, 10.0)):
        assert gathered == list(map(float, layout.group_of("cp", rank)))
        assert total == 10.0 * sum(layout.group_of("tp", rank))


def test_groups_are_found_in_sequences_and_mappings():
    partition = [(1, 0)]
    built = simulate_groups(2, lambda: {"a": [new_parallel_group("tp", partition)], "b": None})
    shifted = simulate_ranks(built, lambda mine: permute(torch.tensor(len(mine["a"])), mine["a"][0], 1))
    assert [value.item() for value in shifted] == [1, 1]
    assert simulate_ranks([ParallelGroup.single("tp")], lambda group: group.size) == [1]


def test_the_first_error_ends_all_ranks():
    def fail_on_one(group):
        if group.rank_in_group == 1:
            raise ValueError("no such weight")
        return all_reduce(torch.ones(1), group)

    groups = simulate_groups(3, lambda: new_parallel_group("tp", [(0, 1, 2)]))
    with pytest.raises(ValueError, match="no such weight"):
        simulate_ranks(groups, fail_on_one)


def test_a_value_may_be_changed_in_place_once_its_rank_has_the_result(monkeypatch):
    """The slow rank reads late: the quick one must not be let go before."""
    cat, clone = torch.cat, torch.Tensor.clone

    def slow(function):
        def late(*arguments):
            if threading.current_thread().name == "late":
                time.sleep(0.05)
            return function(*arguments)

        return late

    monkeypatch.setattr(torch, "cat", slow(cat))
    monkeypatch.setattr(torch.Tensor, "clone", slow(clone))

    def gather_and_change(group):
        if group.rank_in_group:
            threading.current_thread().name = "late"
        mine = torch.full((2,), float(group.rank_in_group))
        results = [all_gather_stacked(mine, group), broadcast(mine, group, 0)]
        mine += 10
        return [result.tolist() for result in results]

    groups = simulate_groups(2, lambda: new_parallel_group("tp", [(0, 1)]))
    for gathered, sent in simulate_ranks(groups, gather_and_change):
        assert gathered == [[0, 0], [1, 1]]
        assert sent == [0, 0]


def test_ranks_that_disagree_or_stay_away_are_told():
    def other_on_one(group):
        x = torch.ones(2)
        return all_reduce(x, group) if group.rank_in_group else all_gather(x, group, 0)

    def away_on_one(group):
        return None if group.rank_in_group else all_reduce(torch.ones(1), group)

    groups = simulate_groups(2, lambda: new_parallel_group("tp", [(0, 1)]))
    with pytest.raises(SimulationError, match="all must call the same"):
        simulate_ranks(groups, other_on_one)
    with pytest.raises(threading.BrokenBarrierError):
        simulate_ranks(groups, away_on_one, timeout_s=0.2)
