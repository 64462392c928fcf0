"""What models call in their graphs, compiled as one, on a device or on the CPU in its place."""

import math

import pytest
import torch

from omni_neuron.distributed.cfg_parallel import combine_guidance
from omni_neuron.distributed.context_parallel import attention_with_lse
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.tensor_parallel import RowParallelLinear
from omni_neuron.runtime.accuracy import assert_three_way
from omni_neuron.runtime.testing import run_on_device

pytestmark = pytest.mark.hardware

GENERATOR = torch.Generator().manual_seed(0)


def random(*shape):
    return torch.randn(*shape, generator=GENERATOR)


def attend(query, key, value):
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(query.shape[-1])
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1).to(value.dtype), value)


def block_attention(query, key, value):
    return attention_with_lse(query, key, value, None)[0]


def guide(positive, negative, scale):
    return combine_guidance(positive, negative, scale)


CASES = {
    "attention over a block": (block_attention, attend, [random(1, 48, 2, 64) for _ in range(3)]),
    "guidance": (guide, guide, [random(1, 16, 3, 8, 8), random(1, 16, 3, 8, 8), torch.tensor(4.0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_bf16_errs_as_bf16_does(name):
    function, reference, inputs = CASES[name]
    exact = reference(*(x.float() for x in inputs))
    low = [x if x.ndim == 0 else x.bfloat16() for x in inputs]
    assert_three_way(exact, reference(*low), run_on_device(function, *low))


def test_a_row_parallel_layer_of_one_rank():
    layer = RowParallelLinear(64, 96, ParallelGroup.single("tp"), dtype=torch.bfloat16)
    layer.weight.data = random(96, 64).bfloat16() / 8
    layer.bias.data = random(96).bfloat16()
    x = random(4, 64).bfloat16()
    exact = x.float() @ layer.weight.float().T + layer.bias.float()
    expected = torch.nn.functional.linear(x, layer.weight, layer.bias)
    with torch.no_grad():
        assert_three_way(exact, expected, run_on_device(layer, x))
