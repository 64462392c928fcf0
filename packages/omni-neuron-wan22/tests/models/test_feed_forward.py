"""The perceptron against its formula."""

import pytest
import torch
from torch.nn import functional

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.wan22.models.feed_forward import WanFeedForward


@pytest.mark.parametrize("approximate", ["tanh", "none"])
@torch.no_grad()
def test_formula_and_names(approximate):
    ffn = WanFeedForward(12, 40, 8, ParallelGroup.single("tp"), approximate=approximate)
    shapes = {name: tuple(parameter.shape) for name, parameter in ffn.named_parameters()}
    assert shapes == {
        "net.0.proj.weight": (40, 12),
        "net.0.proj.bias": (40,),
        "net.2.weight": (8, 40),
        "net.2.bias": (8,),
    }
    for parameter in ffn.parameters():
        parameter.normal_(generator=torch.Generator().manual_seed(0))
    w1, b1, w2, b2 = (parameter.double() for parameter in ffn.parameters())
    x = torch.randn(2, 5, 12)
    before = x.clone()
    hidden = functional.gelu(x.double() @ w1.T + b1, approximate=approximate)
    torch.testing.assert_close(ffn(x).double(), hidden @ w2.T + b2, rtol=1e-5, atol=1e-5)
    assert torch.equal(x, before)
