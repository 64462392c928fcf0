"""A group cannot contradict itself or the live process group."""

import pytest
import torch
import torch.distributed as dist

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.groups import ParallelContext, ParallelGroup
from omni_neuron.distributed.testing import simulated_rank


def test_single_rank_context():
    context = ParallelContext.single_rank()
    for name in ("tp", "cp", "cfg", "text_encoder"):
        group = getattr(context, name)
        assert (group.name, group.ranks, group.rank_in_group, group.size) == (name, (0,), 0, 1)
        assert group.process_group is None
    assert context.tp_reduce_dtype == torch.float32


def test_list_order_is_kept_beside_the_sorted_live_order():
    with simulated_rank(3, 8):
        live = dist.new_group([6, 3, 0])
        group = ParallelGroup.from_process_group("cp", [6, 3, 0], live)
    assert group.ranks == (6, 3, 0)
    assert group.rank_in_group == 1
    assert group.group_name == live.group_name
    assert [(0, 3, 6)[position] for position in group.process_group_order] == [6, 3, 0]


def test_a_process_group_of_one_rank_is_dropped():
    with simulated_rank(3, 8):
        group = ParallelGroup.from_process_group("cfg", [3], dist.new_group([3]))
    assert group.process_group is None
    assert group.ranks == (3,)


def test_contradictions_are_refused():
    with simulated_rank(1, 4):
        live = dist.new_group([0, 1])
        cases = [
            ((), 0, None, "must be distinct and at least one"),
            ((0, 0), 0, live, "must be distinct"),
            ((0, 1), 2, live, r"rank_in_group=2 must lie in 0\.\.1"),
            ((0, 1), 1, None, "has no process group"),
            ((1,), 0, live, "has a process group"),
            ((1, 2), 0, live, r"differ from the live process group's \(0, 1\)"),
            ((0, 1), 0, live, "this process is rank 1"),
            ((1, 0), 1, live, "this process is rank 1"),
        ]
        for ranks, rank_in_group, process_group, message in cases:
            with pytest.raises(LayoutError, match=message):
                ParallelGroup("tp", ranks, rank_in_group, process_group)
        with pytest.raises(LayoutError, match="must contain this process, rank 1"):
            ParallelGroup.from_process_group("tp", [2, 3], live)


def test_the_payload_of_reductions_is_float32_or_bfloat16():
    single = ParallelContext.single_rank()
    groups = (single.tp, single.cp, single.cfg, single.text_encoder)
    assert ParallelContext(*groups, torch.bfloat16).tp_reduce_dtype == torch.bfloat16
    with pytest.raises(LayoutError, match=r"tp_reduce_dtype=torch\.float16 must be"):
        ParallelContext(*groups, torch.float16)


def context_over(cp, **factors):
    single = ParallelContext.single_rank()
    return ParallelContext(single.tp, cp, single.cfg, single.text_encoder, **factors)


def test_context_parallelism_is_a_ring_unless_it_is_factored():
    with simulated_rank(2, 4):
        cp = ParallelGroup("cp", (3, 1, 0, 2), 3, dist.new_group([3, 1, 0, 2]))
        pairs = {ranks: dist.new_group(list(ranks)) for ranks in [(0, 2), (1, 2), (2, 3)]}
        whole = context_over(cp)
        assert (whole.ulysses.size, whole.ring.name, whole.ring.ranks) == (1, "ring", cp.ranks)
        assert whole.ring.group_name == cp.group_name

        def group(name, ranks):
            return ParallelGroup.from_process_group(name, ranks, pairs[tuple(sorted(ranks))])

        factored = context_over(cp, ulysses=group("ulysses", (0, 2)), ring=group("ring", (1, 2)))
        assert (factored.ulysses.size, factored.ring.size) == (2, 2)
        with pytest.raises(LayoutError, match=r"ring group ranks=\(2, 3\) must be \(1, 2\) of the cp group"):
            context_over(cp, ulysses=group("ulysses", (0, 2)), ring=group("ring", (2, 3)))
        with pytest.raises(LayoutError, match=r"ulysses group ranks=\(2, 0\) must be \(0, 2\)"):
            context_over(cp, ulysses=group("ulysses", (2, 0)), ring=group("ring", (1, 2)))
        with pytest.raises(LayoutError, match="ulysses=2 x ring=1 must be cp=4"):
            context_over(cp, ulysses=group("ulysses", (0, 2)))
