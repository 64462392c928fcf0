"""Operations of the arithmetic units, by name, on fp32 arrays; comparisons give 1.0 and 0.0."""

from collections.abc import Callable

import numpy as np

from omni_neuron.sim.numerics.formats import Array

Binary = Callable[[Array, Array], Array]
Unary = Callable[[Array], Array]


def _truth(compare: Binary) -> Binary:
    return lambda a, b: compare(a, b).astype(np.float32)


ARITHMETIC: dict[str, Binary] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
    "abs_max": lambda a, b: np.maximum(np.abs(a), np.abs(b)),
    "abs_min": lambda a, b: np.minimum(np.abs(a), np.abs(b)),
    "equal": _truth(np.equal),
    "not_equal": _truth(np.not_equal),
    "greater": _truth(np.greater),
    "greater_equal": _truth(np.greater_equal),
    "less": _truth(np.less),
    "less_equal": _truth(np.less_equal),
    "logical_and": _truth(np.logical_and),
    "logical_or": _truth(np.logical_or),
    "logical_xor": _truth(np.logical_xor),
}

UNARY: dict[str, Unary] = {
    "abs": np.abs,
    "square": np.square,
    "relu": lambda a: np.maximum(a, np.float32(0)),
    "rsqrt": lambda a: np.float32(1) / np.sqrt(a),
    "reciprocal": lambda a: np.float32(1) / a,
}

BITWISE: dict[str, Binary] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": lambda a, b: _shift(a, b, np.left_shift),
    "right_shift": lambda a, b: _shift(a, b, np.right_shift),
}
BITWISE_UNARY: dict[str, Unary] = {"invert": np.invert}

REDUCE: dict[str, float] = {
    "add": 0.0,
    "subtract": 0.0,
    "multiply": 1.0,
    "maximum": -np.inf,
    "minimum": np.inf,
    "logical_and": 1.0,
    "logical_or": 0.0,
    "logical_xor": 0.0,
    "abs_max": 0.0,
    "abs_min": np.inf,
}
"""Operations that reduce, each with the value from which a reduction starts."""

BITWISE_REDUCE = ("bitwise_and", "bitwise_or", "bitwise_xor")
COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")


def _shift(a: Array, b: Array, shift: Binary) -> Array:
    """A logical shift: no sign is carried, and a distance of the width or more leaves 0."""
    width = a.dtype.itemsize * 8
    unsigned = a.view(np.dtype(f"u{a.dtype.itemsize}"))
    distance = np.asarray(b).astype(unsigned.dtype)
    moved = shift(unsigned, np.minimum(distance, width - 1))
    return np.where(distance >= width, 0, moved).astype(unsigned.dtype).view(a.dtype)


def reduce_axis(name: str, values: Array, axis: int | tuple[int, ...]) -> Array:
    """Reduce axes of an fp32 (or, for bitwise operations, integer) array; the axes stay with size 1."""
    if name in BITWISE_REDUCE:
        ufunc = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}[
            name
        ]
        return np.asarray(ufunc.reduce(values, axis=axis, keepdims=True))
    if name == "add":
        return np.asarray(np.sum(values, axis=axis, keepdims=True, dtype=np.float32))
    if name == "subtract":
        axes = (axis,) if isinstance(axis, int) else axis
        moved = np.moveaxis(values, axes, range(-len(axes), 0))
        flat = moved.reshape(*moved.shape[: -len(axes)], -1)
        total = 2 * flat[..., 0] - flat.sum(axis=-1, dtype=np.float32)
        return np.asarray(total.reshape([1 if i in axes else n for i, n in enumerate(values.shape)]))
    if name == "multiply":
        return np.asarray(np.prod(values, axis=axis, keepdims=True, dtype=np.float32))
    if name in ("maximum", "abs_max"):
        return np.asarray(np.max(np.abs(values) if name == "abs_max" else values, axis=axis, keepdims=True))
    if name in ("minimum", "abs_min"):
        return np.asarray(np.min(np.abs(values) if name == "abs_min" else values, axis=axis, keepdims=True))
    truth = values != 0
    if name == "logical_and":
        return np.asarray(truth.all(axis=axis, keepdims=True)).astype(np.float32)
    if name == "logical_or":
        return np.asarray(truth.any(axis=axis, keepdims=True)).astype(np.float32)
    return np.asarray(truth.sum(axis=axis, keepdims=True) % 2).astype(np.float32)
