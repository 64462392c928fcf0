"""Functions of the Scalar engine, exact where a device evaluates a table, with the range of each table.

Ranges and the behaviour of sin outside of its range: NKI instruction reference, `activation`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Array = Any  # fp32 arrays; numpy's operators have no narrower type

Function = Callable[[Array], Array]
_ROOT_2_OVER_PI = np.float32(math.sqrt(2 / math.pi))
_CUBIC = np.float32(0.044715)
_SIGMOID_GELU = np.float32(1.702)


def _erf(x: Array) -> Array:
    return torch.erf(torch.from_numpy(np.array(x, dtype=np.float64))).numpy().astype(np.float32)


def _sigmoid(x: Array) -> Array:
    wide = x.astype(np.float64)
    return (1 / (1 + np.exp(-wide))).astype(np.float32)


def _erf_dx(x: Array) -> Array:
    return np.float32(2 / math.sqrt(math.pi)) * np.exp(-np.square(x))


def _gelu(x: Array) -> Array:
    return np.float32(0.5) * x * (1 + _erf(x * np.float32(math.sqrt(0.5))))


def _gelu_dx(x: Array) -> Array:
    density = np.exp(np.float32(-0.5) * np.square(x)) * np.float32(1 / math.sqrt(2 * math.pi))
    return np.float32(0.5) * (1 + _erf(x * np.float32(math.sqrt(0.5)))) + x * density


def _gelu_tanh(x: Array) -> Array:
    return np.float32(0.5) * x * (1 + np.tanh(_ROOT_2_OVER_PI * (x + _CUBIC * x * x * x)))


def _gelu_tanh_dx(x: Array) -> Array:
    t = np.tanh(_ROOT_2_OVER_PI * (x + _CUBIC * x * x * x))
    inner = _ROOT_2_OVER_PI * (1 + 3 * _CUBIC * x * x)
    return np.float32(0.5) * (1 + t) + np.float32(0.5) * x * (1 - t * t) * inner


def _gelu_sigmoid(x: Array) -> Array:
    return x * _sigmoid(_SIGMOID_GELU * x)


def _gelu_sigmoid_dx(x: Array) -> Array:
    s = _sigmoid(_SIGMOID_GELU * x)
    return s + _SIGMOID_GELU * x * s * (1 - s)


def _silu(x: Array) -> Array:
    return x * _sigmoid(x)


def _silu_dx(x: Array) -> Array:
    s = _sigmoid(x)
    return s + x * s * (1 - s)


def _softplus(x: Array) -> Array:
    return np.logaddexp(np.float32(0), x)


def _mish(x: Array) -> Array:
    return x * np.tanh(_softplus(x))


def _sin(x: Array) -> Array:
    """Beyond +-pi the table goes on with the cubic expansion around that end: sin(9) is about 27.65."""
    beyond = np.abs(x) - np.float32(math.pi)
    cubic = np.sign(x) * (beyond * beyond * beyond / 6 - beyond)
    return np.where(beyond > 0, cubic, np.sin(x))


ACTIVATIONS: dict[str, Function] = {
    "copy": lambda x: x,
    "square": np.square,
    "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "gelu": _gelu,
    "gelu_dx": _gelu_dx,
    "gelu_apprx_tanh": _gelu_tanh,
    "gelu_apprx_tanh_dx": _gelu_tanh_dx,
    "gelu_apprx_sigmoid": _gelu_sigmoid,
    "gelu_apprx_sigmoid_dx": _gelu_sigmoid_dx,
    "silu": _silu,
    "silu_dx": _silu_dx,
    "tanh": np.tanh,
    "softplus": _softplus,
    "mish": _mish,
    "erf": _erf,
    "erf_dx": _erf_dx,
    "exp": np.exp,
    "sign": np.sign,
    "abs": np.abs,
    "log": np.log,
    "sin": _sin,
    "arctan": np.arctan,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: np.float32(1) / np.sqrt(x),
    "reciprocal": lambda x: np.float32(1) / x,
}

VALID_RANGE: dict[str, tuple[float, float]] = {
    "log": (2.0**-64, 2.0**64),
    "sin": (-math.pi, math.pi),
    "arctan": (-math.pi / 2, math.pi / 2),
    "sqrt": (2.0**-116, 2.0**118),
    "rsqrt": (2.0**-87, 2.0**97),
}
"""Inputs for which the hardware's polynomial is valid; the functions not named here take every input."""

RECIPROCAL_MAGNITUDE = (2.0**-42, 2.0**42)


def outside_valid_range(name: str, x: Array) -> Array | None:
    """Which inputs lie outside of the hardware's range; None where the function has no such limit."""
    if name == "reciprocal":
        size = np.abs(x)
        return (size < RECIPROCAL_MAGNITUDE[0]) | (size > RECIPROCAL_MAGNITUDE[1])
    if name not in VALID_RANGE:
        return None
    low, high = VALID_RANGE[name]
    return (x < np.float32(low)) | (x > np.float32(high))
