"""Norms against double precision: float32 inside, one rounding at the end."""

import pytest
import torch

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.testing import run_ranks
from omni_neuron.wan22.models.norms import (
    DistributedRMSNorm,
    FP32LayerNorm,
    gated_residual,
    modulated_layer_norm,
)

DTYPES = [torch.float32, torch.bfloat16]
SINGLE = ParallelGroup.single("tp")


def assert_rounded_once(actual, expected):
    """``actual`` is ``expected`` (float64) rounded to its dtype, but for ties that float32 noise moves."""
    if actual.dtype == torch.float32:
        torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=2e-6)
    else:
        assert (actual == expected.bfloat16()).double().mean() >= 0.999


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def rms_norm(x, weight, eps):
    x = x.double()
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight.double()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("eps", [1e-6, 0.5])
@pytest.mark.parametrize("traced", [False, True])
def test_rms_norm(dtype, eps, traced, monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: traced)
    norm = DistributedRMSNorm(96, SINGLE, eps, dtype=dtype)
    norm.weight.data = normal(96, seed=1).to(dtype)
    x = normal(2, 33, 96).to(dtype)
    assert_rounded_once(norm(x), rms_norm(x, norm.weight, eps))


def sharded_norm(rank, x, weight, eps):
    group = new_parallel_context(ParallelLayout(tp=2)).tp
    norm = DistributedRMSNorm(96, group, eps)
    norm.weight.data = weight.chunk(2)[rank]
    mine = x.chunk(2, -1)[rank]
    return norm(mine), norm.inverse_rms(mine, 2 * mine)


def test_rms_norm_over_two_ranks_is_the_norm_of_the_whole():
    weight, eps = normal(96, seed=1), 0.5
    x = torch.cat((normal(2, 33, 48), 5 * normal(2, 33, 48, seed=2)), -1)
    ranks = run_ranks(2, sharded_norm, x, weight, eps)
    assert_rounded_once(torch.cat([out for out, _ in ranks], -1), rms_norm(x, weight, eps))
    for _, scales in ranks:
        for factor, scale in zip((1, 2), scales, strict=True):
            expected = ((factor * x.double()).square().mean(-1, keepdim=True) + eps).rsqrt()
            torch.testing.assert_close(scale.double(), expected, rtol=1e-6, atol=0)


def layer_norm(x, eps):
    return torch.nn.functional.layer_norm(x.double(), x.shape[-1:], eps=eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_keeps_float32_parameters(dtype):
    norm = FP32LayerNorm(96, 1e-3)
    norm.weight.data, norm.bias.data = normal(96, seed=1), normal(96, seed=2)
    x = normal(2, 33, 96).to(dtype)
    out = norm(x)
    assert out.dtype == dtype
    assert_rounded_once(out, layer_norm(x, 1e-3) * norm.weight.double() + norm.bias.double())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 33), (2, 33)])
def test_modulation(dtype, shape):
    x = normal(shape[0], 33, 96).to(dtype)
    shift, scale = normal(*shape, 96, seed=1), normal(*shape, 96, seed=2)
    out = modulated_layer_norm(x, shift, scale, 1e-3)
    assert out.dtype == dtype
    assert_rounded_once(out, layer_norm(x, 1e-3) * (1 + scale.double()) + shift.double())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 33)])
def test_gated_residual_leaves_its_input_alone(dtype, shape):
    x, update = normal(2, 33, 96).to(dtype), normal(2, 33, 96, seed=1).to(dtype)
    gate, before = normal(*shape, 96, seed=2), x.clone()
    out = gated_residual(x, update, gate)
    assert out.dtype == dtype
    assert torch.equal(x, before)
    assert_rounded_once(out, x.double() + update.double() * gate.double())
