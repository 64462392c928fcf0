"""The twin beside torch's own layer norm, and where it rounds."""

import pytest
import torch
from torch.nn.functional import layer_norm

from omni_neuron.kernels.adaln.spec import EPS, arguments
from omni_neuron.kernels.adaln.twin import adaln_twin
from omni_neuron.kernels.proof import relative_l2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_without_an_update_it_is_layer_norm_and_modulation(dtype: torch.dtype) -> None:
    x, _, _, scale, shift, *_ = arguments((2, 5, 48), dtype, "norm")
    expected = layer_norm(x.float(), (48,), eps=EPS) * (1 + scale[:, None]) + shift[:, None]
    assert relative_l2(adaln_twin(x, None, None, scale, shift, EPS, True), expected.to(dtype)) <= 1e-6


def test_scale_and_shift_may_be_weight_and_bias() -> None:
    x, _, _, scale, shift, *_ = arguments((1, 5, 48), torch.float32, "norm")
    found = adaln_twin(x, None, None, scale, shift, EPS, False)
    assert relative_l2(found, layer_norm(x, (48,), scale[0], shift[0], EPS)) <= 1e-6


def test_the_norm_is_that_of_the_rounded_sum() -> None:
    x, update, gate, *rest = arguments((1, 5, 48), torch.bfloat16, "gated")
    total, out = adaln_twin(x, update, gate, *rest)
    assert torch.equal(total, torch.addcmul(x.float(), update.float(), gate[:, None]).to(torch.bfloat16))
    assert torch.equal(out, adaln_twin(total, None, None, *rest))


def test_a_modulation_for_each_token() -> None:
    x, *_ = arguments((2, 5, 48), torch.float32, "norm")
    scale, shift = torch.randn(2, 2, 5, 48, generator=torch.Generator().manual_seed(0))
    found = adaln_twin(x, None, None, scale, shift, EPS, True)
    row = adaln_twin(x[1:, 3:4], None, None, scale[1:, 3], shift[1:, 3], EPS, True)
    assert torch.equal(found[1:, 3:4], row)
