"""Random tensors: their distribution, and that they are the same everywhere."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.wan22.checkpoint.recipes.values import Recipe, draw, norm, weight


@given(st.floats(-2, 2), st.floats(0.01, 2), st.integers(0, 1000))
def test_center_and_spread(center, spread, seed):
    tensor = draw({"x": Recipe((64, 64), center, spread)}, str(seed))["x"]
    assert tensor.mean().item() == pytest.approx(center, abs=0.08 * spread)  # five standard errors
    assert tensor.std().item() == pytest.approx(spread, rel=0.08)
    assert (tensor - center).abs().max() <= spread * 3**0.5 * (1 + 1e-5)


def test_a_name_alone_decides_the_values():
    few = draw({"a": norm(8)}, "0/vae")
    many = draw({"b": norm(5), "a": norm(8)}, "0/vae")
    assert torch.equal(few["a"], many["a"])
    assert not torch.equal(draw({"a": norm(8)}, "1/vae")["a"], few["a"])
    assert not torch.equal(draw({"c": norm(8)}, "0/vae")["c"], few["a"])


def test_the_numbers_are_the_same_on_every_machine():
    """Bits of the generator times a constant: nothing here depends on a processor's arithmetic."""
    tensor = draw({"x": Recipe((3,), 0.0, 1.0)}, "golden")["x"]
    assert tensor.tolist() == [-0.8900865316390991, -0.341497540473938, -0.5849218368530273]


@pytest.mark.parametrize("shape", [(32, 48), (16, 8, 3, 3, 3)])
def test_a_weight_keeps_the_variance_of_its_input(shape):
    matrix = draw({"w": weight(*shape, gain=1.5)}, "0")["w"].flatten(1)
    inputs = torch.randn(matrix.shape[1], 4096, generator=torch.Generator().manual_seed(0))
    assert (matrix @ inputs).std().item() == pytest.approx(1.5, rel=0.1)
