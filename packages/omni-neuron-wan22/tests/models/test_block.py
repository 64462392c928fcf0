"""The block's modulation; its numbers are compared with diffusers in test_transformer."""

import torch

from omni_neuron.distributed.groups import ParallelContext
from omni_neuron.wan22.models.attention import sdpa_attention
from omni_neuron.wan22.models.block import WanTransformerBlock
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.rope import build_rotary_tables

CONFIG = WanConfig(num_attention_heads=2, attention_head_dim=12, ffn_dim=20)


def block_and_inputs():
    block = WanTransformerBlock(CONFIG, ParallelContext.single_rank(), sdpa_attention)
    generator = torch.Generator().manual_seed(0)
    for parameter in block.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.3
    x, context, modulation = (
        torch.randn(shape, generator=generator) for shape in ((2, 8, 24), (2, 9, 24), (2, 1, 6, 24))
    )
    return block, x, context, modulation, *build_rotary_tables((2, 2, 2), 12, 8), None


@torch.no_grad()
def test_equal_times_per_token_are_one_time_per_sample():
    block, x, context, modulation, *rest = block_and_inputs()
    expected = block(x, context, modulation, *rest)
    actual = block(x, context, modulation.expand(-1, 8, -1, -1), *rest)
    torch.testing.assert_close(actual, expected)


@torch.no_grad()
def test_closed_gates_leave_cross_attention_only():
    block, x, context, modulation, *rest = block_and_inputs()
    for gate in (2, 5):
        modulation[:, :, gate] = -block.scale_shift_table[:, gate]
    expected = x + block.attn2(block.norm2(x), context)
    torch.testing.assert_close(block(x, context, modulation, *rest), expected)


@torch.no_grad()
def test_a_token_has_its_own_modulation():
    block, x, context, modulation, *rest = block_and_inputs()
    modulation = modulation.repeat(1, 8, 1, 1)
    before = block(x, context, modulation, *rest)
    modulation[:, 3, 3:] += 1.0  # of the feed-forward: no other token sees it
    changed = (block(x, context, modulation, *rest) != before).any(-1)
    assert changed.nonzero()[:, 1].unique().tolist() == [3]
