"""Vector and GpSimd instructions that compute element by element."""

from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import current_core
from omni_neuron.sim.memory.access import Codes
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.arithmetic import alu, apply, binary, is_bitwise, is_unary
from omni_neuron.sim.nki.isa.enums import Engine
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.operands import merge, scalar_or_vector, store, stored, values
from omni_neuron.sim.nki.isa.rules import (
    PSUM,
    choose_engine,
    needs_generation,
    on_engine,
    one_in_psum,
    per_partition,
    same_elements,
)  # fmt: skip
from omni_neuron.sim.numerics.formats import Array, int32, uint32

_NEW_TENSOR_SCALAR = ("square", "relu")


@instruction
def tensor_tensor(
    dst: NkiTensor,
    data1: NkiTensor,
    data2: NkiTensor,
    op: Any,
    engine: Engine = Engine.unknown,
    name: str | None = None,
) -> Work:
    """dst = data1 op data2. int32 and uint32 are exact on GpSimd, and computed in fp32 on Vector."""
    operation = binary(op)
    exact = _all_wide_integers(dst, data1, data2) and not is_bitwise(operation)
    wanted = engine
    if wanted == Engine.unknown:
        in_psum = any(isinstance(t, NkiTensor) and t.buffer is PSUM for t in (dst, data1, data2))
        wanted = Engine.gpsimd if (exact or operation == "power") and not in_psum else Engine.vector
    chosen = choose_engine(wanted, (Engine.vector, Engine.gpsimd))
    on_engine(chosen, dst=dst, data1=data1, data2=data2)
    one_in_psum("data1", data1, "data2", data2)
    same_elements(dst, data1=data1, data2=data2)
    if is_bitwise(operation):
        a, b, codes = _integers(dst, data1, data2)
        store_integers(dst, apply(operation, a, b), codes)
    elif exact and chosen is Engine.gpsimd:
        a, b, codes = _integers(dst, data1, data2)
        wide = apply(operation, a.astype(np.int64), b.astype(np.int64))
        store_integers(dst, _wrapped(wide, a.dtype), codes)
    else:
        (a, first), (b, second) = values(data1), values(data2)
        store(dst, apply(operation, a, b), merge(first, second))
    return Work(chosen, (dst,), (data1, data2))


def _all_wide_integers(*tensors: NkiTensor) -> bool:
    return all(isinstance(t, NkiTensor) and t.dtype in (int32, uint32) for t in tensors)


def _integers(dst: NkiTensor, a: NkiTensor, b: NkiTensor) -> tuple[Array, Array, Codes | None]:
    for argument, tensor in (("dst", dst), ("data1", a), ("data2", b)):
        if not tensor.dtype.is_integer:
            raise KernelError("dtype", f"{argument} = {tensor!r}: this operation takes integers.")
    if not dst.itemsize == a.itemsize == b.itemsize:
        raise KernelError(
            "dtype", f"bitwise operations do not cast: dst = {dst!r}, {a!r} and {b!r} differ in width."
        )
    (first, first_codes), (second, second_codes) = stored(a), stored(b)
    return first, second.astype(first.dtype), merge(first_codes, second_codes)


def _wrapped(wide: Array, storage: np.dtype[Any]) -> Array:
    """Integer arithmetic keeps the low bits."""
    return wide.astype(np.int64).astype(storage)


def store_integers(dst: NkiTensor, result: Array, codes: Codes | None) -> None:
    """Bits, unchanged."""
    store(dst, result.view(dst.dtype.storage) if dst.dtype.kind == "int" else result, codes)


@instruction
def tensor_scalar(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    engine: Engine = Engine.unknown,
    name: str | None = None,
) -> Work:
    """dst = (data op0 operand0) op1 operand1; operands are numbers or fp32 tiles (P, 1)."""
    steps = [(alu(op0, "op0"), operand0, reverse0, "operand0")]
    if op1 is not None:
        steps.append((alu(op1, "op1"), operand1, reverse1, "operand1"))
    elif operand1 is not None:
        raise KernelError("operand", "operand1 is given without op1.")
    names = [step[0] for step in steps]
    chosen = _tensor_scalar_engine(engine, names)
    on_engine(chosen, dst=dst, data=data)
    same_elements(dst, data=data)
    for operation in names:
        if operation in _NEW_TENSOR_SCALAR:
            needs_generation(4, f"nl.{operation} in tensor_scalar")
    if any(map(is_bitwise, names)):
        if not all(map(is_bitwise, names)):
            raise KernelError("operator", f"{' and '.join(names)}: both bitwise, or both arithmetic.")
        reads = _bitwise_chain(dst, data, steps, chosen)
    else:
        result, codes = values(data)
        result, codes, reads = chain(result, codes, steps, data.partitions, chosen)
        store(dst, result, codes)
    return Work(chosen, (dst,), (data, *reads))


def _tensor_scalar_engine(wanted: Engine, names: list[str]) -> Engine:
    if "rsqrt" in names and wanted == Engine.unknown:
        return Engine.gpsimd
    chosen = choose_engine(wanted, (Engine.vector, Engine.scalar, Engine.gpsimd))
    simple = names in (["multiply"], ["add"], ["multiply", "add"])
    if chosen is Engine.scalar and current_core().generation <= 3 and not simple:
        raise KernelError(
            "engine",
            f"{' then '.join(names)} on the Scalar engine: trn2 has multiply, add, and multiply then add.",
        )
    return chosen


Step = tuple[str, Any, bool, str]


def chain(
    result: Array, codes: Codes | None, steps: list[Step], partitions: int, engine: Engine
) -> tuple[Array, Codes | None, tuple[NkiTensor, ...]]:
    """Apply operations with scalar or (P, 1) operands one after the other, in fp32."""
    reads: list[NkiTensor] = []
    for operation, operand, reverse, argument in steps:
        if is_unary(operation):
            if operand is not None and (isinstance(operand, NkiTensor) or operand != 0):
                raise KernelError("operand", f"{argument} = {operand!r}: nl.{operation} takes none (or 0).")
            result = apply(operation, result, None)
            continue
        if isinstance(operand, NkiTensor):
            on_engine(engine, **{argument: operand})
            reads.append(operand)
        value, more = scalar_or_vector(argument, operand, partitions)
        result = apply(operation, result, value, reverse)
        codes = merge(codes, more)
    return result, codes, tuple(reads)


def _bitwise_chain(
    dst: NkiTensor, data: NkiTensor, steps: list[Step], engine: Engine
) -> tuple[NkiTensor, ...]:
    if not (dst.dtype.is_integer and data.dtype.is_integer and dst.itemsize == data.itemsize):
        raise KernelError(
            "dtype", f"bitwise operations take integers of one width: dst = {dst!r}, data = {data!r}."
        )
    result, codes = stored(data)
    reads: list[NkiTensor] = []
    for operation, operand, reverse, argument in steps:
        value: Any = operand
        if isinstance(operand, NkiTensor):
            on_engine(engine, **{argument: operand})
            per_partition(argument, operand, data.partitions)
            if not operand.dtype.is_integer:
                raise KernelError("dtype", f"{argument} = {operand!r} must hold integers.")
            value, more = stored(operand)
            value = value.astype(result.dtype)
            codes = merge(codes, more)
            reads.append(operand)
        elif isinstance(operand, float):
            raise KernelError("dtype", f"{argument} = {operand}: bitwise operations take an int.")
        elif operand is not None:
            value = np.array(operand, dtype=np.int64).astype(result.dtype)
        result = apply(operation, result, value, reverse)
    store_integers(dst, result, codes)
    return tuple(reads)


@instruction
def scalar_tensor_tensor(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: NkiTensor,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> Work:
    """dst = (data op0 operand0) op1 operand1, with a number or (P, 1) first and a whole tile second."""
    on_engine(Engine.vector, dst=dst, data=data, operand1=operand1)
    one_in_psum("data", data, "operand1", operand1)
    same_elements(dst, data=data, operand1=operand1)
    first, second = alu(op0, "op0"), binary(op1, "op1")
    if is_bitwise(first) or is_bitwise(second):
        raise KernelError("operator", f"nl.{first} and nl.{second}: arithmetic operations only.")
    result, codes = values(data)
    result, codes, reads = chain(
        result, codes, [(first, operand0, reverse0, "operand0")], data.partitions, Engine.vector
    )
    other, more = values(operand1)
    store(dst, apply(second, result, other, reverse1), merge(codes, more))
    return Work(Engine.vector, (dst,), (data, operand1, *reads))


@instruction
def reciprocal(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> Work:
    """dst = 1 / data on the Vector engine."""
    on_engine(Engine.vector, dst=dst, data=data)
    same_elements(dst, data=data)
    elements, codes = values(data)
    store(dst, np.float32(1) / elements, codes)
    return Work(Engine.vector, (dst,), (data,))
