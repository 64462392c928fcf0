"""The sequence cut and joined, for lengths that nothing divides."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.distributed.context_parallel import (
    gather_sequence,
    padded_length,
    sequence_key_mask,
    split_sequence,
)
from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.process_groups import new_parallel_group
from omni_neuron.distributed.simulation import simulate_groups, simulate_ranks

ONE = ParallelGroup.single("cp")


def counted(*shape):
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)


@given(
    length=st.integers(1, 40),
    order=st.integers(1, 8).flatmap(lambda cp: st.permutations(range(cp))),
    dim=st.sampled_from([0, 1, 2, -1, -2, -3]),
)
def test_shares_are_equal_and_join_to_the_padded_sequence(length, order, dim):
    shape, cp = [2, 3, 4], len(order)
    shape[dim] = length
    x = counted(*shape)
    groups = simulate_groups(cp, lambda: new_parallel_group("cp", [order]))

    def cut_and_join(group):
        share = split_sequence(x, group, dim)
        return share, gather_sequence(share, group, dim, length)

    results = simulate_ranks(groups, cut_and_join)
    shares = [results[rank][0] for rank in order]
    total = padded_length(length, groups[0])
    mask = sequence_key_mask(length, groups[0])
    joined = torch.cat(shares, dim)
    assert all(share.shape == shares[0].shape and share.is_contiguous() for share in shares)
    assert total % cp == 0
    assert length <= total < length + cp
    assert joined.shape[dim] == total
    assert torch.equal(joined.narrow(dim, 0, length), x)
    assert not joined.narrow(dim, length, total - length).any()
    assert all(torch.equal(whole, x) for _, whole in results)
    if total == length:
        assert mask is None
    else:
        assert mask.tolist() == [True] * length + [False] * (total - length)


@given(length=st.integers(1, 20), cp=st.integers(2, 5))
def test_modulation_of_each_token_is_cut_with_its_token(length, cp):
    tokens, timestep = counted(2, length, 4), counted(2, length)
    modulation = counted(2, length, 6, 4) / 100
    groups = simulate_groups(cp, lambda: new_parallel_group("cp", [range(cp)]))

    def block(x, t, m):
        scale, shift, gate = m[:, :, 0], m[:, :, 1], m[:, :, 5]
        return (x * scale + shift) * gate + t.unsqueeze(-1)

    def cut(group):
        share = block(*(split_sequence(x, group, 1) for x in (tokens, timestep, modulation)))
        return gather_sequence(share, group, 1, length)

    whole = block(tokens, timestep, modulation)
    assert all(torch.equal(result, whole) for result in simulate_ranks(groups, cut))


def test_one_rank_keeps_its_tensor():
    x = counted(1, 7)
    assert split_sequence(x, ONE, 1) is x
    assert gather_sequence(x, ONE, 1, 7) is x
    assert sequence_key_mask(7, ONE) is None


def test_a_length_of_another_sequence_is_refused():
    with pytest.raises(ShardingError, match="length=6 does not belong to 1 shares of 7 tokens"):
        gather_sequence(torch.zeros(1, 7), ONE, 1, 6)
