"""Blocks of keys merge to the attention over all of them, whatever the logits and masks."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from omni_neuron.distributed.context_parallel import OnlineSoftmax, attention_with_lse

FP32_BAR = 1e-6


def merged(query, key, value, mask, bounds):
    state = None
    for start, stop in zip([0, *bounds], [*bounds, key.shape[1]], strict=True):
        block = attention_with_lse(
            query, key[:, start:stop], value[:, start:stop], None if mask is None else mask[:, start:stop]
        )
        state = OnlineSoftmax.first(*block) if state is None else state.merge(*block)
    return state


def reference(query, key, value, mask):
    """Softmax attention and log-sum-exp in float64; rows without keys are zeros and minus infinity."""
    query, key, value = (x.double() for x in (query, key, value))
    scores = torch.einsum("bqhd,bkhd->bqhk", query, key) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None], -torch.inf)
    probabilities = torch.softmax(scores, -1).nan_to_num(0.0)
    return torch.einsum("bqhk,bkhd->bqhd", probabilities, value), torch.logsumexp(scores, -1)


def relative(actual, expected):
    return (actual.double() - expected).norm() / expected.norm().clamp_min(1e-30)


@given(
    keys=st.lists(st.booleans(), min_size=1, max_size=24),
    cuts=st.lists(st.integers(1, 23), max_size=5, unique=True),
    masked=st.booleans(),
    scale=st.sampled_from([1.0, 30.0]),
    seed=st.integers(0, 99),
)
@example(keys=[False] * 8 + [True], cuts=[4, 8], masked=True, scale=1.0, seed=0)
@example(keys=[True] + [False] * 8, cuts=[4, 8], masked=True, scale=1.0, seed=0)
@example(keys=[False] * 6, cuts=[3], masked=True, scale=1.0, seed=0)
def test_blocks_merge_to_the_whole(keys, cuts, masked, scale, seed):
    generator = torch.Generator().manual_seed(seed)
    length = len(keys)
    query = torch.randn(2, 3, 2, 8, generator=generator) * scale
    key, value = (torch.randn(2, length, 2, 8, generator=generator) for _ in range(2))
    mask = torch.tensor([keys, [True] * length]) if masked else None
    state = merged(query, key, value, mask, sorted(cut for cut in cuts if cut < length))
    expected, lse = reference(query, key, value, mask)
    # The rounding of a logit of size s moves its weight by s * eps.
    assert relative(state.result(), expected) <= FP32_BAR * max(1.0, scale / 4)
    found = state.maximum.double() + state.weight.double().log()
    assert torch.all(found[lse.isinf()] < -1e29)
    torch.testing.assert_close(found[lse.isfinite()], lse[lse.isfinite()], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1e2, 1e4, 1e8])
def test_no_row_vanishes_at_adversarial_logits(size):
    # Each row has its largest logit in another block, far above or below what the blocks before showed.
    steps = torch.tensor([-1.0, 1.0, -3.0, 2.0, -2.0, 3.0, 0.0, -1.5]) * size
    key = steps.reshape(1, 8, 1, 1).expand(1, 8, 1, 4).contiguous()
    query = torch.tensor([1.0, -1.0, 0.25, 1e-3]).reshape(1, 4, 1, 1).expand(1, 4, 1, 4).contiguous()
    value = torch.arange(1.0, 33.0).reshape(1, 8, 1, 4)
    for bounds in ([], [4], [1, 2, 3, 4, 5, 6, 7], [2, 6]):
        result = merged(query, key, value, None, bounds).result()
        expected, _ = reference(query, key, value, None)
        assert result.isfinite().all()
        assert (result.abs().sum(-1) >= 1).all()
        assert relative(result, expected) <= FP32_BAR


def test_bfloat16_is_raised_and_never_rounded_before_the_end():
    generator = torch.Generator().manual_seed(3)
    query, key, value = (torch.randn(1, 40, 2, 16, generator=generator).bfloat16() for _ in range(3))
    state = merged(query, key, value, None, [7, 20])
    assert state.weighted.dtype == state.weight.dtype == torch.float32
    assert relative(state.result(), reference(query, key, value, None)[0]) <= FP32_BAR


def test_a_foreign_minus_infinity_means_an_empty_block():
    out, lse = torch.ones(1, 2, 1, 4), torch.zeros(1, 2, 1)
    nothing = torch.zeros_like(out), torch.full_like(lse, -torch.inf)
    for state in (
        OnlineSoftmax.first(*nothing).merge(*nothing).merge(out, lse),
        OnlineSoftmax.first(out, lse).merge(*nothing),
    ):
        assert torch.equal(state.result(), out)
    assert torch.equal(OnlineSoftmax.first(*nothing).merge(*nothing).result(), nothing[0])
