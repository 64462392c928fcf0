"""The convenience functions of `nki.language` (`nl.add(a, b)`, `nl.load(x)`), each made of instructions.

They give new tiles in SBUF (transpose and matmul in PSUM) of the first operand's dtype unless told
otherwise, and broadcast nothing but numbers, as the documentation says of them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki import isa
from omni_neuron.sim.nki.language.creation import allocate
from omni_neuron.sim.nki.language.operators import OPERATORS, Operator
from omni_neuron.sim.numerics.activations import ACTIVATIONS
from omni_neuron.sim.numerics.alu import ARITHMETIC, BITWISE
from omni_neuron.sim.numerics.formats import float32, uint8

TWO_PI = 2 * np.pi


def _like(x: NkiTensor, dtype: Any, shape: Any = None) -> NkiTensor:
    return allocate(shape or x.shape, dtype or x.dtype, MemorySpace.sbuf)


def load(src: NkiTensor, dtype: Any = None, **_: Any) -> NkiTensor:
    """HBM to a new tile in SBUF."""
    tile = _like(src, dtype)
    isa.dma_copy(tile, src)
    return tile


def store(dst: NkiTensor, value: NkiTensor, **_: Any) -> None:
    """A tile in SBUF to HBM."""
    isa.dma_copy(dst, value)


def _binary(op: Operator) -> Callable[..., NkiTensor]:
    def compute(x: Any, y: Any, dtype: Any = None) -> NkiTensor:
        if isinstance(x, NkiTensor) and isinstance(y, NkiTensor):
            tile = _like(x, dtype)
            isa.tensor_tensor(tile, x, y, op)
        elif isinstance(x, NkiTensor):
            tile = _like(x, dtype)
            isa.tensor_scalar(tile, x, op, y)
        elif isinstance(y, NkiTensor):
            tile = _like(y, dtype)
            isa.tensor_scalar(tile, y, op, x, reverse0=True)
        else:
            raise KernelError("operand", f"{op!r} takes at least one tensor.")
        return tile

    return compute


def _unary(op: Operator) -> Callable[..., NkiTensor]:
    def compute(x: NkiTensor, dtype: Any = None) -> NkiTensor:
        tile = _like(x, dtype)
        isa.activation(tile, op, x)
        return tile

    return compute


def _reduction(op: Operator) -> Callable[..., NkiTensor]:
    def compute(x: NkiTensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> NkiTensor:
        axes = {axis % x.ndim} if isinstance(axis, int) else {a % x.ndim for a in axis}
        kept = [n for i, n in enumerate(x.shape) if i not in axes]
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)] if keepdims else kept
        tile = _like(x, dtype, shape if len(shape) > 1 else [*shape, 1])
        isa.tensor_reduce(tile, op, x, axis, keepdims=keepdims)
        return tile

    return compute


def copy(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    tile = _like(x, dtype)
    isa.tensor_copy(tile, x, engine=isa.engine.vector)
    return tile


def rsqrt(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """On GpSimd, which does not reach PSUM."""
    tile = _like(x, dtype)
    isa.tensor_scalar(tile, x, OPERATORS["rsqrt"], None, engine=isa.engine.gpsimd)
    return tile


def reciprocal(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    tile = _like(x, dtype)
    isa.reciprocal(tile, x)
    return tile


def divide(x: Any, y: Any, dtype: Any = None) -> NkiTensor:
    """x times the reciprocal of y; the hardware does not divide."""
    if not isinstance(y, NkiTensor):
        return _binary(OPERATORS["multiply"])(x, 1.0 / y, dtype)
    inverse = reciprocal(y, float32)
    return _binary(OPERATORS["multiply"])(
        x, inverse, dtype or (x.dtype if isinstance(x, NkiTensor) else y.dtype)
    )


def negative(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    return _binary(OPERATORS["multiply"])(x, -1.0, dtype)


def logical_not(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    return _binary(OPERATORS["equal"])(x, 0.0, dtype)


def invert(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    tile = _like(x, dtype)
    isa.tensor_scalar(tile, x, OPERATORS["invert"], None)
    return tile


def sin(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    """With the argument brought into -pi to pi first, which the instruction does not do."""
    return _periodic(x, 0.0, dtype)


def cos(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    return _periodic(x, float(np.pi / 2), dtype)


def _periodic(x: NkiTensor, shift: float, dtype: Any) -> NkiTensor:
    from omni_neuron.sim.nki.isa.operands import store as put
    from omni_neuron.sim.nki.isa.operands import values

    reduced = _like(x, float32)
    elements, codes = values(x)
    turned = elements.astype(np.float64) + shift
    put(reduced, turned - TWO_PI * np.rint(turned / TWO_PI), codes)
    tile = _like(x, dtype)
    isa.activation(tile, OPERATORS["sin"], reduced)
    return tile


def mean(x: NkiTensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> NkiTensor:
    axes = {axis % x.ndim} if isinstance(axis, int) else {a % x.ndim for a in axis}
    count = int(np.prod([x.shape[i] for i in axes]))
    total = _reduction(OPERATORS["add"])(x, axis, float32, keepdims)
    return _binary(OPERATORS["multiply"])(total, 1.0 / count, dtype or x.dtype)


def var(x: NkiTensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> NkiTensor:
    """The mean square of what is left when the mean is taken out."""
    centre, shifted = mean(x, axis, float32, keepdims=True), _like(x, float32)
    isa.tensor_tensor(shifted, x, broadcast_to(centre, x.shape), OPERATORS["subtract"])
    isa.activation(shifted, OPERATORS["square"], shifted)
    return mean(shifted, axis, dtype or x.dtype, keepdims)


def dropout(x: NkiTensor, rate: Any, dtype: Any = None) -> NkiTensor:
    """Elements are 0 with probability `rate`; the others stay as they are."""
    tile = _like(x, dtype)
    isa.dropout(tile, x, rate)
    return tile


def random_seed(seed: Any) -> None:
    """Start the sequence of random numbers anew."""
    isa.set_rng_seed(seed)


def gather_flattened(data: NkiTensor, indices: NkiTensor, dtype: Any = None) -> NkiTensor:
    """In each partition the elements at `indices` (uint32) of the flattened free dimensions."""
    tile = _like(data, None, indices.shape)
    isa.nc_n_gather(tile, data, indices)
    return tile if dtype is None else copy(tile, dtype)


def softmax(x: NkiTensor, axis: Any = -1, dtype: Any = None) -> NkiTensor:
    """Over the last free dimensions, with the row maximum taken out."""
    rows = x.reshape((x.shape[0], x.columns))
    top, total, shifted = (_like(rows, float32, (rows.shape[0], 1)) for _ in range(3))
    isa.tensor_reduce(top, OPERATORS["maximum"], rows, 1, negate=True)
    powers = _like(rows, float32)
    isa.activation_reduce(powers, OPERATORS["exp"], rows, OPERATORS["add"], total, bias=top)
    isa.reciprocal(shifted, total)
    tile = _like(x, dtype)
    isa.tensor_scalar(tile.reshape(rows.shape), powers, OPERATORS["multiply"], shifted)
    return tile


def rms_norm(
    x: NkiTensor, w: NkiTensor, axis: Any, n: int, epsilon: float = 1e-6, dtype: Any = None
) -> NkiTensor:
    """x * w / sqrt(mean(x^2) + epsilon), the mean over n elements."""
    total, factor = (_like(x, float32, (x.shape[0], 1)) for _ in range(2))
    squares, normed = _like(x, float32), _like(x, float32)
    isa.activation_reduce(squares, OPERATORS["square"], x, OPERATORS["add"], total)
    isa.tensor_scalar(factor, total, OPERATORS["multiply"], 1.0 / n, op1=OPERATORS["add"], operand1=epsilon)
    isa.activation(factor, OPERATORS["rsqrt"], factor)
    isa.tensor_scalar(normed, x, OPERATORS["multiply"], factor)
    tile = _like(x, dtype)
    isa.tensor_tensor(tile, normed, w, OPERATORS["multiply"])
    return tile


def matmul(x: NkiTensor, y: NkiTensor, transpose_x: bool = False) -> NkiTensor:
    """x.T @ y in PSUM; x must come transposed, `[K, M]`."""
    if not transpose_x:
        raise KernelError(
            "operand", "nl.matmul contracts over partitions: pass x as [K, M] with transpose_x=True."
        )
    tile = allocate((x.columns, y.columns), float32, MemorySpace.psum)
    isa.nc_matmul(tile, x, y)
    return tile


def transpose(x: NkiTensor, dtype: Any = None) -> NkiTensor:
    tile = allocate((x.columns, x.shape[0]), x.dtype, MemorySpace.psum)
    isa.nc_transpose(tile, x, engine=isa.engine.tensor)
    return copy(tile, dtype) if dtype is not None else tile


def where(condition: NkiTensor, x: NkiTensor, y: Any, dtype: Any = None) -> NkiTensor:
    predicate = _like(condition, uint8)
    isa.tensor_scalar(predicate, condition, OPERATORS["not_equal"], 0.0)
    tile = _like(x, dtype)
    if isinstance(y, NkiTensor):
        isa.tensor_copy(tile, y)
    else:
        isa.memset(tile, y)
    source = x if x.dtype is tile.dtype else copy(x, tile.dtype)
    isa.tensor_copy_predicated(tile, source, predicate)
    return tile


def broadcast_to(x: NkiTensor, shape: Any) -> NkiTensor:
    """A view with free dimensions of size 1 repeated."""
    view = x
    for dim, size in enumerate(shape):
        if view.shape[dim] != size:
            view = view.broadcast(dim, size)
    return view


def expand_dims(x: NkiTensor, axis: int) -> NkiTensor:
    return x.expand_dim(axis)


def _attach() -> None:
    """Give every operator the function that calls it."""
    for name, op in OPERATORS.items():
        if name in ARITHMETIC or name in BITWISE:
            op.function = _binary(op)
        elif name in ACTIVATIONS:
            op.function = _unary(op)
    for name in ("max", "min", "sum", "prod", "all"):
        OPERATORS[name].function = _reduction(OPERATORS[name])
    own = (copy, rsqrt, reciprocal, divide, negative, logical_not, invert, sin, cos)
    for function in own:
        OPERATORS[function.__name__].function = function


_attach()
