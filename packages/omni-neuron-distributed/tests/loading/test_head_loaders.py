"""Heads in any order, padded or shared: each rank's cut against the formula on whole tensors."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.loading.weight_loaders import fused_head_sharded, head_sharded
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.testing import simulated_rank


def tp_groups(tp):
    for rank in range(tp):
        with simulated_rank(rank, tp):
            yield new_parallel_context(ParallelLayout(tp=tp)).tp


def counted(*shape, first=1):
    return torch.arange(first, first + torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


def heads_first(tensor, heads, dim):
    """[..., heads * head_dim, ...] -> [heads, head_dim, ...]"""
    return tensor.movedim(dim, 0).unflatten(0, (heads, -1))


def ordered(tensor, heads, dim, order, total):
    """The formula: heads reordered, zero heads appended up to ``total``, in the tensor's own shape."""
    split = heads_first(tensor, heads, dim)[list(order)]
    split = torch.cat([split, split.new_zeros(total - heads, *split.shape[1:])])
    return split.flatten(0, 1).movedim(0, dim)


@st.composite
def fused_cases(draw):
    heads = draw(st.integers(1, 7))
    parts = draw(st.integers(1, 3))
    orders = [draw(st.permutations(range(heads))) for _ in range(parts)]
    return heads, orders, draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.sampled_from([0, 1, -1]))


@given(case=fused_cases(), storage=st.sampled_from(["separate", "packed", "interleaved"]))
def test_permuted_padded_parts_join_to_the_reordered_tensors(case, storage):
    heads, orders, tp, head_dim, dim = case
    if heads < tp and tp % heads == 0:
        tp = heads
    shape = [2, 2]
    shape[dim] = heads * head_dim
    wholes = [counted(*shape, first=1 + 1000 * part) for part in range(len(orders))]
    stored = {
        "separate": wholes,
        "packed": [torch.cat(wholes, dim)],
        "interleaved": [
            torch.stack([heads_first(whole, heads, dim) for whole in wholes], 1).flatten(0, 2).movedim(0, dim)
        ],
    }[storage]
    total = -(-heads // tp) * tp
    expected = [ordered(whole, heads, dim, order, total) for whole, order in zip(wholes, orders, strict=True)]
    ranks = []
    for group in tp_groups(tp):
        loader = fused_head_sharded(
            dim, group, [heads] * len(orders), head_dim, orders=orders, pad=True, storage=storage
        )
        placement = loader.placement([tuple(tensor.shape) for tensor in stored])
        placement.require_complete("weight")
        value = loader(stored)
        assert loader.expected_shapes(value.shape) == [tuple(tensor.shape) for tensor in stored]
        mine = torch.cat([whole.chunk(tp, dim)[group.rank_in_group] for whole in expected], dim)
        assert torch.equal(value, mine)
        ranks.append(value.chunk(len(orders), dim))
    for part, (whole, order) in enumerate(zip(wholes, orders, strict=True)):
        joined = heads_first(torch.cat([rank[part] for rank in ranks], dim), total, dim)
        inverse = [list(order).index(head) for head in range(heads)]
        assert torch.equal(joined[inverse], heads_first(whole, heads, dim))
        assert not joined[heads:].any()


@given(kv=st.integers(1, 3), copies=st.integers(1, 3), per_kv=st.integers(1, 2))
def test_ranks_share_key_and_value_heads_of_which_there_are_fewer(kv, copies, per_kv):
    tp = kv * copies
    query, key = counted(tp * per_kv * 2, 3), counted(kv * 2, 3, first=5000)
    for group in tp_groups(tp):
        loader = fused_head_sharded(0, group, (tp * per_kv, kv), 2)
        value = loader([query, key])
        rank = group.rank_in_group
        expected = [query.chunk(tp)[rank], key[rank // copies * 2 :][:2]]
        assert torch.equal(value, torch.cat(expected))
        assert loader.expected_shapes(value.shape) == [tuple(query.shape), tuple(key.shape)]


def test_one_order_serves_the_projections_and_the_output_layer():
    order, tp, heads, head_dim = [2, 0, 3, 1], 2, 4, 3
    x, up, down = counted(5, 6) / 30, counted(heads * head_dim, 6) / 72, counted(6, heads * head_dim) / 72
    total = torch.zeros(5, 6)
    for group in tp_groups(tp):
        rows = head_sharded(0, group, heads, head_dim=head_dim, order=order)([up])
        columns = head_sharded(1, group, heads, head_dim=head_dim, order=order)([down])
        total += x @ rows.T @ columns.T
    torch.testing.assert_close(total, x @ up.T @ down.T)


def test_a_rank_of_zero_heads_reads_nothing():
    group = list(tp_groups(4))[3]
    loader = head_sharded(0, group, 5, head_dim=2, pad=True)
    assert loader.placement([(10, 3)]).shape == (4, 3)
    assert not loader([counted(10, 3)]).any()


@pytest.mark.parametrize(
    ("message", "build"),
    [
        (
            "num_heads=6 must be divisible by tp=4",
            lambda group: fused_head_sharded(0, group, [6], 2),
        ),
        (
            r"order=\(0, 0, 1, 2\) must name each of 4 heads once",
            lambda group: head_sharded(0, group, 4, head_dim=2, order=[0, 0, 1, 2]),
        ),
        ("need num_heads and head_dim", lambda group: head_sharded(0, group, 4, order=[0, 1, 2, 3])),
        ("need num_heads and head_dim", lambda group: head_sharded(0, group, pad=True)),
        ("one per part: 2", lambda group: fused_head_sharded(0, group, [4, 4], 2, orders=[None])),
        (
            r"num_heads=\(8, 4\) must be equal",
            lambda group: fused_head_sharded(0, group, [8, 4], 2, storage="interleaved"),
        ),
        (
            r"checkpoint dimension 0=\(7,\) must be \(8,\)",
            lambda group: head_sharded(0, group, 4, head_dim=2).placement([(7, 2)]),
        ),
    ],
)
def test_what_cannot_be_cut_is_refused(message, build):
    group = list(tp_groups(4))[1]
    with pytest.raises(ShardingError, match=message):
        build(group)
