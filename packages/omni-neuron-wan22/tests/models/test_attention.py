"""What the two attentions attend to; their numbers are compared with diffusers in test_transformer."""

from dataclasses import replace

import pytest
import torch

from omni_neuron.distributed.context_parallel import split_sequence
from omni_neuron.distributed.groups import ParallelContext
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.simulation import simulate_groups, simulate_ranks
from omni_neuron.wan22.models.attention import (
    WanCrossAttention,
    WanSelfAttention,
    sdpa_attention,
)
from omni_neuron.wan22.models.config import TEXT_LENGTH, WanConfig
from omni_neuron.wan22.models.rope import build_rotary_tables

CONFIG = WanConfig(num_attention_heads=2, attention_head_dim=12, image_dim=5, added_kv_proj_dim=24)


def filled(module):
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.3
    return module


def test_masked_keys_do_not_exist():
    attention = sdpa_attention("self", 2, 12)
    query, key, value = (torch.randn(2, length, 2, 12) for length in (5, 9, 9))
    mask = torch.arange(9).expand(2, -1) < torch.tensor([[4], [9]])
    out = attention(query, key, value, mask)
    assert out.shape == (2, 5, 2, 12)
    torch.testing.assert_close(out[:1], attention(query[:1], key[:1, :4], value[:1, :4], None))
    torch.testing.assert_close(out[1:], attention(query[1:], key[1:], value[1:], None))


def test_softmax_scale_is_the_root_of_the_head_dim():
    query, key, value = (torch.randn(1, 3, 1, 12).double() for _ in range(3))
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / 12**0.5
    expected = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), value)
    torch.testing.assert_close(sdpa_attention("self", 1, 12)(query, key, value, None), expected)


@torch.no_grad()
def test_padded_tokens_do_not_reach_the_others():
    attention = filled(WanSelfAttention(CONFIG, ParallelContext.single_rank(), sdpa_attention))
    cos, sin = build_rotary_tables((1, 2, 4), 12, 8)
    x = torch.randn(1, 8, 24)
    mask = torch.arange(8) < 6
    short = attention(x[:, :6], cos[:, :6], sin[:, :6], None)
    torch.testing.assert_close(attention(x, cos, sin, mask)[:, :6], short)
    assert not torch.allclose(attention(x, cos, sin, None)[:, :6], short)


@pytest.mark.parametrize("ring_attention", [False, True])
@torch.no_grad()
def test_over_heads_and_tokens_it_is_that_of_one_rank_and_a_ring_needs_no_attention_of_a_whole(
    ring_attention,
):
    x = torch.randn(1, 8, 24)
    cos, sin = build_rotary_tables((1, 2, 4), 12, 8)
    whole = filled(WanSelfAttention(CONFIG, ParallelContext.single_rank(), sdpa_attention))(x, cos, sin, None)

    def rank(parallel):
        built, seen = [], []

        def factory(role, num_heads, head_dim):
            built.append((role, num_heads, head_dim))

            def attend(query, key, value, key_mask=None):
                seen.append((query.shape[2], key.shape[1]))
                return sdpa_attention(role, num_heads, head_dim)(query, key, value, key_mask)

            return attend

        attention = filled(WanSelfAttention(CONFIG, parallel, factory))
        share, *tables = (split_sequence(part, parallel.cp, 1) for part in (x, cos, sin))
        error = attention(share, *tables, None) - split_sequence(whole, parallel.cp, 1)
        return built, seen, float(error.norm() / whole.norm())

    layout = ParallelLayout(cp=4, ulysses=2)
    contexts = simulate_groups(4, lambda: new_parallel_context(layout))
    contexts = [replace(context, ring_attention=ring_attention) for context in contexts]
    for built, seen, error in simulate_ranks(contexts, rank):
        assert built == [("self", 1, 12)]
        assert seen == ([] if ring_attention else [(1, 8)])
        assert error <= 1e-6


def test_each_branch_has_its_role():
    seen = []

    def factory(role, num_heads, head_dim):
        def attend(query, key, value, key_mask=None):
            seen.append((role, num_heads, head_dim, key.shape[1], key_mask))
            return torch.zeros_like(query)

        return attend

    attention = filled(WanCrossAttention(CONFIG, ParallelContext.single_rank(), factory))
    attention(torch.randn(1, 3, 24), torch.randn(1, 257 + TEXT_LENGTH, 24))
    assert seen == [("cross", 2, 12, TEXT_LENGTH, None), ("cross_image", 2, 12, 257, None)]


@pytest.mark.parametrize("part", ["add_k_proj", "add_v_proj", "norm_added_k"])
@torch.no_grad()
def test_image_tokens_have_their_own_projections(part):
    attention = filled(WanCrossAttention(CONFIG, ParallelContext.single_rank(), sdpa_attention))
    x, context = torch.randn(1, 3, 24), torch.randn(1, 4 + TEXT_LENGTH, 24)
    before = attention(x, context)
    getattr(attention, part).weight.data.neg_()
    assert not torch.allclose(attention(x, context), before, atol=1e-4)
