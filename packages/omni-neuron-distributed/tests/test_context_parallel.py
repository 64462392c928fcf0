"""The sequence cut, joined and attended to, for lengths that nothing divides."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from omni_neuron.distributed.context_parallel import (
    context_parallel_attention,
    gather_sequence,
    padded_length,
    sequence_key_mask,
    split_sequence,
)
from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.testing import run_ranks, simulated_rank

LENGTHS = range(1, 14)
ONE = ParallelGroup.single("cp")


def attention(query, key, value, key_mask):
    mask = None if key_mask is None else key_mask[:, None, None, :]
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)


def qkv(length, dtype=torch.float32):
    generator = torch.Generator().manual_seed(length)
    return [torch.randn(2, length, 3, 8, generator=generator).to(dtype) * 2 for _ in range(3)]


@given(length=st.integers(1, 40), cp=st.integers(1, 8), dim=st.sampled_from([0, 1, 2, -1, -2, -3]))
def test_shares_are_equal_and_join_to_the_padded_sequence(length, cp, dim):
    shape = [2, 3, 4]
    shape[dim] = length
    x = torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)
    shares = []
    for rank in range(cp):
        with simulated_rank(rank, cp):
            group = new_parallel_context(ParallelLayout(cp=cp)).cp
            shares.append(split_sequence(x, group, dim))
            total = padded_length(length, group)
            mask = sequence_key_mask(length, group)
    joined = torch.cat(shares, dim)
    assert all(share.shape == shares[0].shape and share.is_contiguous() for share in shares)
    assert total % cp == 0
    assert length <= total < length + cp
    assert joined.shape[dim] == total
    assert torch.equal(joined.narrow(dim, 0, length), x)
    assert not joined.narrow(dim, length, total - length).any()
    if total == length:
        assert mask is None
    else:
        assert mask.tolist() == [True] * length + [False] * (total - length)


def round_trip_and_attend(rank, cp):
    group = new_parallel_context(ParallelLayout(cp=cp)).cp
    results = {}
    for length in LENGTHS:
        inputs = qkv(length)
        shares = [split_sequence(x, group, 1) for x in inputs]
        start, rows = rank * shares[0].shape[1], shares[0].shape[1]
        padding = torch.arange(start, start + rows) >= length
        for share in shares:
            # Padding as a model leaves it: not zero, and loud where it leaks.
            share[:, padding] = 300.0
        mask = sequence_key_mask(length, group)
        both = None if mask is None else mask.expand(2, -1)
        local = context_parallel_attention(attention, *shares, group, mask)
        local_both = context_parallel_attention(attention, *shares, group, both)
        results[length] = {
            "round_trip": [
                gather_sequence(split_sequence(x, group, dim), group, dim, x.shape[dim])
                for x in inputs
                for dim in (1, -1)
            ],
            "inputs": inputs,
            "finite": bool(local.isfinite().all()),
            "same_mask": torch.equal(local, local_both),
            "attention": gather_sequence(local, group, 1, length),
        }
    return results


@pytest.mark.parametrize("cp", [2, 4])
def test_every_length_equals_one_rank(cp):
    for results in run_ranks(cp, round_trip_and_attend, cp):
        for length in LENGTHS:
            result = results[length]
            whole = [x for x in result["inputs"] for _ in range(2)]
            assert all(torch.equal(a, b) for a, b in zip(result["round_trip"], whole, strict=True))
            assert result["finite"], "padded query rows must stay finite"
            assert result["same_mask"]
            reference = attention(*(x.double() for x in qkv(length)), None)
            error = (result["attention"].double() - reference).norm() / reference.norm()
            assert error <= 1e-6, (length, error)


def test_one_rank_is_plain_attention():
    inputs = qkv(7)
    assert torch.equal(context_parallel_attention(attention, *inputs, ONE), attention(*inputs, None))
    assert split_sequence(inputs[0], ONE, 1) is inputs[0]
    assert gather_sequence(inputs[0], ONE, 1, 7) is inputs[0]
    assert sequence_key_mask(7, ONE) is None
    mask = torch.arange(7) < 5
    masked = context_parallel_attention(attention, *inputs, ONE, mask)
    shorter = attention(inputs[0], inputs[1][:, :5], inputs[2][:, :5], None)
    torch.testing.assert_close(masked, shorter, rtol=1e-5, atol=1e-6)


def test_a_length_or_mask_of_another_sequence_is_refused():
    with pytest.raises(ShardingError, match="length=6 does not belong to 1 shares of 7 tokens"):
        gather_sequence(torch.zeros(1, 7), ONE, 1, 6)
    with pytest.raises(ShardingError, match="key_mask of 6 tokens must cover the 7 gathered keys"):
        context_parallel_attention(attention, *qkv(7), ONE, torch.ones(6, dtype=torch.bool))
