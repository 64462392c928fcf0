"""Every rank's cut, put together again, is the checkpoint tensor."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.loading.placement import volume
from omni_neuron.distributed.loading.weight_loaders import (
    fused_sharded,
    get_weight_loader,
    head_sharded,
    packed_sharded,
    padded,
    padded_sharded,
    replicated,
    scaled_bias,
    set_weight_loader,
    sharded,
    transposed,
    vocab_sharded,
)
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.testing import simulated_rank


def tp_groups(tp):
    for rank in range(tp):
        with simulated_rank(rank, tp):
            yield new_parallel_context(ParallelLayout(tp=tp)).tp


def counted(*shape):
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)


def entries_read(loader, whole):
    return sum(volume(piece.read) for piece in loader.placement([tuple(whole.shape)]).pieces)


@given(tp=st.integers(1, 5), share=st.integers(1, 4), dim=st.sampled_from([0, 1, 2, -1]))
def test_shards_join_in_list_order_and_only_they_are_read(tp, share, dim):
    shape = [2, 3, 4]
    shape[dim] = share * tp
    whole = counted(*shape)
    shards = []
    for group in tp_groups(tp):
        for loader in (sharded(dim, group), head_sharded(dim, group, tp)):
            shard = loader([whole])
            assert entries_read(loader, whole) == shard.numel() == whole.numel() // tp
            assert loader.expected_shapes(shard.shape) == [tuple(shape)]
        shards.append(shard)
    assert torch.equal(torch.cat(shards, dim), whole)


@given(tp=st.integers(1, 4), shares=st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_fused_shards_hold_a_part_of_each_tensor_in_turn(tp, shares):
    wholes = [counted(share * tp, 2) + 1000 * i for i, share in enumerate(shares)]
    for group in tp_groups(tp):
        loader = fused_sharded(0, group, [share * tp for share in shares])
        fused = loader(wholes)
        assert loader.expected_shapes(fused.shape) == [tuple(whole.shape) for whole in wholes]
        for part, whole, share in zip(fused.split(shares), wholes, shares, strict=True):
            assert torch.equal(part, whole[group.rank_in_group * share :][:share])


def test_fused_shards_are_query_key_and_value_unless_sizes_are_given():
    for group in tp_groups(2):
        assert fused_sharded(0, group).expected_shapes((6, 5)) == [(4, 5)] * 3
        with pytest.raises(ShardingError, match="fused size=8 must be divisible by parts=3"):
            fused_sharded(0, group).expected_shapes((4, 5))


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_scaled_biases_sum_to_the_bias(tp):
    bias = counted(7).bfloat16()
    shares = [scaled_bias(group)([bias]) for group in tp_groups(tp)]
    assert torch.equal(sum(shares), bias.float())
    assert all(torch.equal(share, bias.float() / tp) for share in shares)
    assert next(scaled_bias(group).expected_shapes((7,)) for group in tp_groups(tp)) == [(7,)]


@given(tp=st.integers(1, 6), rows=st.integers(1, 14))
def test_vocabulary_rows_are_cut_equally_and_padded_with_zeros(tp, rows):
    whole = counted(rows, 3)
    shards = []
    for group in tp_groups(tp):
        loader = vocab_sharded(group, rows)
        shards.append(loader([whole]))
        assert loader.expected_shapes(shards[-1].shape) == [(rows, 3)]
    assert len({shard.shape for shard in shards}) == 1
    joined = torch.cat(shards)
    assert joined.shape[0] == -(-rows // tp) * tp
    assert torch.equal(joined[:rows], whole)
    assert not joined[rows:].any()


@given(
    tp=st.integers(1, 4), shares=st.lists(st.integers(1, 3), min_size=1, max_size=4), dim=st.integers(0, 1)
)
def test_a_packed_tensor_gives_a_part_of_each_of_its_parts(tp, shares, dim):
    parts = [counted(share * tp, 2) + 1000 * i for i, share in enumerate(shares)]
    parts = parts if dim == 0 else [part.T for part in parts]
    whole = torch.cat(parts, dim)
    for group in tp_groups(tp):
        loader = packed_sharded(dim, group, [share * tp for share in shares])
        value = loader([whole])
        assert entries_read(loader, whole) == value.numel() == whole.numel() // tp
        assert loader.expected_shapes(value.shape) == [tuple(whole.shape)]
        expected = [part.chunk(tp, dim)[group.rank_in_group] for part in parts]
        assert torch.equal(value, torch.cat(expected, dim))


@given(tp=st.integers(1, 5), size=st.integers(1, 9), dim=st.sampled_from([0, 1, -1]))
def test_padded_shards_join_to_the_tensor_and_zeros(tp, size, dim):
    shape = [2, 2]
    shape[dim] = size
    whole = counted(*shape)
    shards = []
    for group in tp_groups(tp):
        loader = padded_sharded(dim, group, size)
        loader.placement([tuple(shape)]).require_complete("weight")
        shards.append(loader([whole]))
        assert loader.expected_shapes(shards[-1].shape) == [tuple(shape)]
    joined = torch.cat(shards, dim)
    assert torch.equal(joined.narrow(dim, 0, size), whole)
    assert not joined.narrow(dim, size, joined.shape[dim] - size).any()


@given(tp=st.integers(1, 4), share=st.integers(1, 3), dim=st.integers(0, 1), more=st.integers(0, 3))
def test_transposed_storage_and_padding_of_the_last_dimension(tp, share, dim, more):
    shape = [3, 3]
    shape[dim] = share * tp
    whole = counted(*shape)
    for group in tp_groups(tp):
        shard = whole.chunk(tp, dim)[group.rank_in_group]
        wide = torch.nn.functional.pad(shard, (0, more))
        tall = torch.nn.functional.pad(shard.T, (0, 0, 0, more))
        inner = sharded(dim, group)
        size, rows = shard.shape[1], shard.T.shape[0]
        for loader, expected in (
            (transposed(inner), shard.T),
            (transposed(transposed(inner)), shard),
            (padded(inner, -1, size, size + more), wide),
            (transposed(padded(inner, -1, size, size + more)), wide.T),
            (padded(transposed(inner), 0, rows, rows + more), tall),
        ):
            loader.placement([tuple(shape)]).require_complete("weight")
            value = loader([whole])
            assert torch.equal(value, expected)
            assert loader.expected_shapes(value.shape) == [tuple(shape)]


def test_a_padded_scaled_bias():
    for group in tp_groups(2):
        loader = padded(scaled_bias(group), 0, 3, 5)
        assert loader([counted(3)]).tolist() == [0.5, 1, 1.5, 0, 0]
        assert loader.expected_shapes((5,)) == [(3,)]


def test_wrappers_that_do_not_fit_are_refused():
    with pytest.raises(ShardingError, match="padded_size=2 must be at least size=3"):
        padded(replicated(), 0, 3, 2)
    with pytest.raises(ShardingError, match="dimension 0=4 must be size=3 before padding"):
        padded(replicated(), 0, 3, 8).placement([(4,)])
    with pytest.raises(ShardingError, match="must have two dimensions"):
        transposed(replicated()).placement([(2, 3, 4)])


def test_what_the_group_does_not_divide_is_refused():
    for group in tp_groups(4):
        with pytest.raises(ShardingError, match="num_heads=6 must be divisible by tp=4"):
            head_sharded(0, group, 6)
        with pytest.raises(ShardingError, match="checkpoint dimension 1=6 must be divisible by tp=4"):
            sharded(-1, group)([counted(2, 6)])


def test_a_parameter_is_replicated_unless_it_carries_a_loader():
    parameter = nn.Parameter(torch.zeros(2, 3))
    loader = get_weight_loader(parameter)
    assert loader == replicated()
    assert loader.expected_shapes(parameter.shape) == [(2, 3)]
    assert torch.equal(loader([counted(2, 3)]), counted(2, 3))
    assert loader([torch.tensor(4.0)]).shape == ()
    for group in tp_groups(1):
        set_weight_loader(parameter, scaled_bias(group))
        assert get_weight_loader(parameter) == scaled_bias(group)
