"""The channel norm of the VAE against the definition, in its eager and its graph form."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from omni_neuron.wan22.models.vae_norm import ChannelRMSNorm, channel_norm


def expected(x, gamma):
    return functional.normalize(x.double(), dim=1) * x.shape[1] ** 0.5 * gamma.double()


def eager(norm, x):
    return norm(x)


def graph(norm, x):
    return torch.compile(norm, backend="aot_eager", fullgraph=True)(x)


@pytest.mark.parametrize("run", [eager, graph])
@pytest.mark.parametrize("magnitude", [1.0, 1e4, 1e-11, 1e-20, 0.0])
def test_norm_follows_the_definition_at_every_magnitude(run, magnitude):
    generator = torch.Generator().manual_seed(0)
    x = magnitude * torch.randn(2, 24, 3, 4, 5, generator=generator)
    norm = ChannelRMSNorm(24)
    norm.gamma.data.normal_(generator=generator)
    with torch.no_grad():
        actual, exact = run(norm, x), expected(x, norm.gamma)
    assert (actual - exact).norm() <= 1e-6 * exact.norm()


@pytest.mark.parametrize("run", [eager, graph])
def test_bfloat16_is_rounded_once(run):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 24, 1, 4, 5, generator=generator).bfloat16()
    norm = ChannelRMSNorm(24, dtype=torch.bfloat16)
    norm.gamma.data.normal_(generator=generator)
    with torch.no_grad():
        actual, exact = run(norm, x), expected(x, norm.gamma)
    assert actual.dtype == torch.bfloat16
    assert (actual.double() - exact).norm() <= 1.15 * 1.66e-3 * exact.norm()


@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, n) for n in (2, 70, 3, 5, 5)]),
    order=st.sampled_from([(0, 1, 2, 3, 4), (0, 2, 1, 3, 4), (0, 2, 3, 4, 1)]),
    seed=st.integers(0, 1000),
)
def test_channel_norm_has_the_bits_of_vector_norm_in_every_memory_order(shape, order, seed):
    generator = torch.Generator().manual_seed(seed)
    stored = torch.randn([shape[axis] for axis in order], generator=generator)
    x = stored.permute([order.index(axis) for axis in range(5)])
    theirs = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    # The last bit where a size of 1 leaves torch the choice between its two orders of summation.
    exact_order = 1 not in shape
    torch.testing.assert_close(channel_norm(x), theirs, rtol=0 if exact_order else 3e-7, atol=0)
