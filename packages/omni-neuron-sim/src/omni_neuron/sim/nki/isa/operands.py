"""Operands as fp32 matrices `[partitions, elements per partition]` with the codes of what is undefined."""

import warnings
from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError, KernelWarning, kernel_line
from omni_neuron.sim.execution.core import current_core
from omni_neuron.sim.memory.access import Codes, read, require_defined, write
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.rules import per_partition
from omni_neuron.sim.numerics.formats import (
    FP8,
    Array,
    DType,
    encode,
    float16,
    float32,
    storage_of,
    tfloat32,
    to_float32,
)  # fmt: skip


def stored(tensor: NkiTensor) -> tuple[Array, Codes | None]:
    """Stored elements `[P, N]`."""
    content = read(tensor)
    shape = (tensor.partitions, tensor.columns)
    codes = content.undefined
    return content.values.reshape(shape), None if codes is None else codes.reshape(shape)


def values(tensor: NkiTensor) -> tuple[Array, Codes | None]:
    """Elements `[P, N]` in fp32, as an engine sees them."""
    if tensor.dtype.kind == "packed":
        raise KernelError("dtype", f"{tensor!r} is packed; only nc_matmul_mx and copies take that.")
    elements, codes = stored(tensor)
    return to_float32(elements), codes


def scalar_or_vector(
    argument: str, operand: Any, partitions: int, fp32: bool = True
) -> tuple[Any, Codes | None]:
    """A number, or a tile `(P, 1)` that is broadcast over the free dimensions."""
    if isinstance(operand, NkiTensor):
        per_partition(argument, operand, partitions)
        if fp32 and operand.dtype is not float32:
            raise KernelError("dtype", f"{argument} = {operand!r} must be float32.")
        if operand.dtype is tfloat32:
            raise KernelError("dtype", f"{argument} = {operand!r} must not be tfloat32.")
        return values(operand)
    if isinstance(operand, bool | int | float | np.integer | np.floating):
        return np.float32(operand), None
    raise KernelError("operand", f"{argument} is a {type(operand).__name__}: give a number or a (P, 1) tile.")


def merge(*codes: Codes | None) -> Codes | None:
    """Undefined where any of the operands is."""
    found = [c for c in codes if c is not None]
    if not found:
        return None
    result = found[0]
    for other in found[1:]:
        result = np.maximum(result, other)
    return result


def rows(codes: Codes | None) -> Codes | None:
    """Undefined where anything of the row is: `[P, 1]`."""
    return None if codes is None else codes.max(axis=1, keepdims=True)


def spread(codes: Codes | None, shape: tuple[int, ...]) -> Codes | None:
    """Codes broadcast to the result's shape; None where nothing is undefined."""
    if codes is None or not codes.any():
        return None
    return np.array(np.broadcast_to(codes, shape))


def store(dst: NkiTensor, result: Array, codes: Codes | None = None, mask: Array | None = None) -> None:
    """Round once to dst's dtype and write `[P, N]`."""
    if dst.dtype.kind == "packed":
        raise KernelError("dtype", f"dst = {dst!r} is packed; only quantize_mx and copies write that.")
    rounded = rounded_as(dst, np.asarray(result))
    if dst.dtype in FP8 or dst.dtype is float16:
        _warn_of_overflow(result, dst.dtype)
    place = None if mask is None else np.broadcast_to(mask, (dst.partitions, dst.columns)).reshape(dst.shape)
    shape = (dst.partitions, dst.columns)
    write(dst, np.broadcast_to(rounded, shape), spread(codes, shape), place)


def rounded_as(dst: NkiTensor, result: Array) -> Array:
    """An engine's result as dst stores it, with the rounding of the launch."""
    return encode(result, dst.dtype, dst.buffer_.precise, current_core().rounding)


def _warn_of_overflow(result: Array, dtype: DType) -> None:
    beyond = np.abs(result) > dtype.largest * (1 + 2**-11)
    if beyond.any() and (beyond := beyond & np.isfinite(result)).any():
        largest = float(np.abs(result[beyond]).max())
        warn(f"{int(beyond.sum())} values up to {largest:g} exceed {dtype!s}'s {dtype.largest:g}")


def warn(what: str) -> None:
    """A KernelWarning with the kernel's line."""
    core = current_core()
    warnings.warn(f"{kernel_line()}: {core.opcode}: {what}.", KernelWarning, stacklevel=2)


def defined_integers(argument: str, tensor: NkiTensor) -> Array:
    """Integer elements `[P, N]` that are used as indices."""
    if not tensor.dtype.is_integer:
        raise KernelError("dtype", f"{argument} = {tensor!r} must hold integers.")
    content = read(tensor)
    require_defined(content, tensor, argument)
    return content.values.reshape(tensor.partitions, tensor.columns).astype(np.int64)


def element_storage(tensor: NkiTensor) -> np.dtype[Any]:
    return storage_of(tensor.dtype, tensor.buffer_.precise)
