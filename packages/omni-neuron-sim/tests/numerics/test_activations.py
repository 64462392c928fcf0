import numpy as np
import pytest
import torch
from torch.nn import functional

from omni_neuron.sim.numerics.activations import ACTIVATIONS, outside_valid_range

TORCH = {
    "copy": lambda x: x, "square": torch.square, "sigmoid": torch.sigmoid, "relu": torch.relu, "gelu":
    functional.gelu, "gelu_apprx_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "gelu_apprx_sigmoid": lambda x: x * torch.sigmoid(1.702 * x), "silu": functional.silu, "tanh":
    torch.tanh, "softplus": functional.softplus, "mish": functional.mish,
    "erf": torch.erf, "exp": torch.exp, "sign": torch.sign, "abs": torch.abs, "log": torch.log, "sin":
    torch.sin, "arctan": torch.atan, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal,
}  # fmt: skip
POSITIVE = ("log", "sqrt", "rsqrt", "reciprocal")


@pytest.mark.parametrize("name", sorted(TORCH))
def test_functions_are_those_of_float64(name: str) -> None:
    x = np.linspace(0.01, 3, 301) if name in POSITIVE else np.linspace(-3, 3, 601)
    ours = ACTIVATIONS[name](x.astype(np.float32))
    exact = TORCH[name](torch.from_numpy(x.astype(np.float32).astype(np.float64))).numpy()
    np.testing.assert_allclose(ours, exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n.endswith("_dx")])
def test_derivatives_are_derivatives(name: str) -> None:
    x = torch.linspace(-3, 3, 301, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(TORCH[name.removesuffix("_dx")](x).sum(), x)
    ours = ACTIVATIONS[name](x.detach().numpy().astype(np.float32))
    np.testing.assert_allclose(ours, slope.numpy(), rtol=2e-6, atol=2e-6)


def test_sin_leaves_its_range_as_the_hardware_does() -> None:
    assert ACTIVATIONS["sin"](np.float32([9.0]))[0] == pytest.approx(27.65, abs=0.01)
    assert ACTIVATIONS["sin"](np.float32([-9.0]))[0] == pytest.approx(-27.65, abs=0.01)


def test_inputs_outside_of_the_tables_are_known() -> None:
    assert outside_valid_range("sqrt", np.float32([0.0, 1.0])).tolist() == [True, False]
    assert outside_valid_range("reciprocal", np.float32([-1.0, 1e15])).tolist() == [False, True]
    assert outside_valid_range("exp", np.float32([1e30])) is None
