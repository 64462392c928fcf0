"""Every way to attend over a cut sequence gives the rows of one rank."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from omni_neuron.distributed.context_parallel import (
    attention_with_lse,
    context_parallel_attention,
    gather_sequence,
    gathered_attention,
    sequence_key_mask,
    split_sequence,
)
from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.simulation import simulate_groups, simulate_ranks
from omni_neuron.distributed.testing import run_ranks

ONE = ParallelGroup.single("cp")
FP32_BAR = 1e-6


def attention(query, key, value, key_mask):
    mask = None if key_mask is None else key_mask[:, None, None, :]
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)


def qkv(length, heads, dtype=torch.float32):
    generator = torch.Generator().manual_seed(31 * length + heads)
    return [torch.randn(2, length, heads, 8, generator=generator).to(dtype) * 1.5 for _ in range(3)]


def whole_ring(query, key, value, group, key_mask):
    """What a kernel with exchanges of its own is given, attended to in another way."""
    assert group.size > 1
    assert key_mask is None or key_mask.shape == (query.shape[0], group.size * query.shape[1])
    return gathered_attention(attention, query, key, value, group, key_mask)


def attend(parallel, length, heads, ring, mask_form="whole", dtype=torch.float32):
    """The whole result on one rank, from shares whose padding is not zero, and loud where it leaks."""
    cp = parallel.cp
    shares = [split_sequence(x, cp, 1) for x in qkv(length, heads, dtype)]
    rows = shares[0].shape[1]
    padding = torch.arange(cp.rank_in_group * rows, (cp.rank_in_group + 1) * rows) >= length
    for share in shares:
        share[:, padding] = 300.0
    mask = sequence_key_mask(length, cp)
    if mask is not None:
        match mask_form:
            case "batch":
                mask = mask.expand(2, -1)
            case "share":
                mask = split_sequence(mask, cp, 0)
    local = context_parallel_attention(
        attention,
        *shares,
        parallel,
        mask,
        ring=attention_with_lse if ring else None,
        whole_ring=whole_ring if ring == "whole" else None,
        pad_heads=True,
    )
    assert local.isfinite().all(), "padded query rows must stay finite"
    assert local.dtype == dtype
    return gather_sequence(local, cp, 1, length)


def error_of(result, length, heads, dtype=torch.float32):
    reference = attention(*(x.double() for x in qkv(length, heads, dtype)), None)
    return (result.double() - reference).norm() / reference.norm()


@settings(max_examples=80)
@given(
    ulysses=st.integers(1, 4),
    ring_size=st.integers(1, 4),
    length=st.integers(1, 41),
    heads=st.integers(1, 6),
    ring=st.sampled_from([False, True, "whole"]),
    mask_form=st.sampled_from(["whole", "batch", "share"]),
    data=st.data(),
)
def test_any_length_heads_factors_and_placement_equal_one_rank(
    ulysses, ring_size, length, heads, ring, mask_form, data
):
    cp = ulysses * ring_size
    placement = data.draw(st.permutations(range(cp)))
    layout = ParallelLayout(cp=cp, ulysses=ulysses, placement=placement)
    contexts = simulate_groups(cp, lambda: new_parallel_context(layout))
    results = simulate_ranks(contexts, attend, length, heads, ring, mask_form)
    assert all(torch.equal(result, results[0]) for result in results)
    assert error_of(results[0], length, heads) <= FP32_BAR


@pytest.mark.parametrize("ring", [False, True])
def test_sixty_four_ranks_over_the_trn2_columns(ring):
    columns = [0, 4, 16, 20, 32, 36, 48, 52], [12, 8, 28, 24, 44, 40, 60, 56]
    # Tensor parallelism inside a chip, the columns of the trn2 mesh across: the published layout A.
    order = [chip + core for column in columns for chip in column for core in range(4)]
    layout = ParallelLayout(tp=4, cp=8, cfg=2, ulysses=2, placement=order)
    contexts = simulate_groups(64, lambda: new_parallel_context(layout))
    results = simulate_ranks(contexts, attend, 77, 2, ring)
    assert all(torch.equal(result, results[0]) for result in results)
    assert error_of(results[0], 77, 2) <= FP32_BAR


def test_bfloat16_rounds_once_in_the_ring():
    layout = ParallelLayout(cp=4)
    contexts = simulate_groups(4, lambda: new_parallel_context(layout))
    result = simulate_ranks(contexts, attend, 50, 2, True, "whole", torch.bfloat16)[0]
    reference = attention(*(x.double() for x in qkv(50, 2, torch.bfloat16)), None)
    rounded = reference.to(torch.bfloat16).double()
    assert error_of(result, 50, 2, torch.bfloat16) <= 1.001 * (rounded - reference).norm() / reference.norm()


def attend_in_every_way(rank, world_size):
    """Factors and ring or gather of one world, on an ascending and an interleaved placement."""
    results = []
    interleaved = [*range(1, world_size, 2), *reversed(range(0, world_size, 2))]
    for placement in (None, interleaved):
        for ulysses in (u for u in (1, 2, 4, 8) if world_size % u == 0):
            parallel = new_parallel_context(
                ParallelLayout(cp=world_size, ulysses=ulysses, placement=placement)
            )
            for (length, heads), ring in product(((13, 4), (16, 3), (1, 8)), (False, True)):
                results.append((length, heads, attend(parallel, length, heads, ring)))
    return results


@pytest.mark.parametrize("world_size", [2, 4, 8])
def test_real_ranks_equal_one_rank(world_size):
    ranks = run_ranks(world_size, attend_in_every_way, world_size)
    for cases in zip(*ranks, strict=True):
        length, heads, first = cases[0]
        assert error_of(first, length, heads) <= FP32_BAR, (length, heads)
        assert all(torch.equal(result, first) for _, _, result in cases)


def test_one_rank_is_plain_attention_with_or_without_a_context():
    inputs = qkv(7, 3)
    assert torch.equal(context_parallel_attention(attention, *inputs, ONE), attention(*inputs, None))
    mask = torch.arange(7) < 5
    masked = context_parallel_attention(attention, *inputs, ONE, mask)
    shorter = attention(inputs[0], inputs[1][:, :5], inputs[2][:, :5], None)
    torch.testing.assert_close(masked, shorter, rtol=1e-5, atol=1e-6)
    single = new_parallel_context(ParallelLayout())
    ringed = context_parallel_attention(attention, *inputs, single, mask, ring=attention_with_lse)
    assert torch.equal(ringed, masked)


def test_a_context_parallel_group_alone_is_a_ring():
    contexts = simulate_groups(3, lambda: new_parallel_context(ParallelLayout(cp=3)))

    def both(parallel):
        shares = [split_sequence(x, parallel.cp, 1) for x in qkv(9, 2)]
        return [context_parallel_attention(attention, *shares, groups) for groups in (parallel, parallel.cp)]

    assert all(torch.equal(*results) for results in simulate_ranks(contexts, both))


def test_a_mask_of_another_sequence_and_heads_that_do_not_divide_are_refused():
    with pytest.raises(ShardingError, match="key_mask of 6 tokens must cover the 7 of the padded sequence"):
        context_parallel_attention(attention, *qkv(7, 3), ONE, torch.ones(6, dtype=torch.bool))
    parallel = simulate_groups(2, lambda: new_parallel_context(ParallelLayout(cp=2, ulysses=2)))[0]
    with pytest.raises(
        ShardingError, match="heads=3 of each tensor-parallel rank must be divisible by ulysses=2"
    ):
        context_parallel_attention(attention, *qkv(7, 3), parallel)
