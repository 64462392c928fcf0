"""Self-attention around a ring of processes: as a kernel in the interpreter, and as a ring of blocks."""

from dataclasses import replace

import pytest
import torch

from omni_neuron.distributed.context_parallel import sequence_key_mask, split_sequence
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.replica_groups import register_context
from omni_neuron.distributed.testing import run_ranks
from omni_neuron.wan22.models import attention as wan_attention
from omni_neuron.wan22.models.attention import WanSelfAttention, sdpa_attention
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.ring_kernel import ring_kernel
from omni_neuron.wan22.models.rope import build_rotary_tables

CONFIG = WanConfig(num_attention_heads=2, attention_head_dim=12)
LAYOUT = ParallelLayout(cp=4, ulysses=2, placement=(1, 3, 0, 2))


@torch.no_grad()
def attend(rank: int, length: int, with_kernel: bool) -> tuple[torch.Tensor, int]:
    """This rank's share of the result, and how often the kernel was asked."""
    parallel = replace(new_parallel_context(LAYOUT), ring_attention=True)
    register_context(LAYOUT, parallel)
    asked = []

    def counted(*arguments: object) -> torch.Tensor:
        asked.append(rank)
        return ring_kernel(*arguments)

    wan_attention.ring_kernel = counted
    wan_attention.can_run_kernel = lambda _: with_kernel
    module = WanSelfAttention(CONFIG, parallel, sdpa_attention)
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.3
    whole = torch.randn(1, length, 24, generator=generator)
    cos, sin = build_rotary_tables((1, 1, length), 12, 16)
    x, cos, sin = (split_sequence(tensor, parallel.cp, 1) for tensor in (whole, cos, sin))
    return module(x, cos, sin, sequence_key_mask(length, parallel.cp)), len(asked)


@pytest.mark.parametrize("length", [16, 13])
def test_the_kernel_gives_what_the_ring_of_blocks_does(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rings in a world of four, out of order, with and without padding."""
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "1")
    blocks = run_ranks(4, attend, length, False)
    kernel = run_ranks(4, attend, length, True)
    for (plain, never), (found, once) in zip(blocks, kernel, strict=True):
        assert (never, once) == (0, 1)
        torch.testing.assert_close(found, plain, rtol=1e-5, atol=2e-6)
