"""Vector instructions that reduce or scan along the free dimensions."""

from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import current_core
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.arithmetic import alu, apply, binary, is_bitwise, reduction
from omni_neuron.sim.nki.isa.elementwise import chain, store_integers
from omni_neuron.sim.nki.isa.enums import Engine, ReduceCmd
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.operands import merge, scalar_or_vector, store, stored, values
from omni_neuron.sim.nki.isa.reduction_registers import lanes_of, update_registers, write_registers
from omni_neuron.sim.nki.isa.rules import on_engine, one_in_psum, same_elements
from omni_neuron.sim.numerics.alu import REDUCE, reduce_axis
from omni_neuron.sim.numerics.formats import int32, uint32

CUMULATIVE = ("add", "subtract", "multiply", "maximum", "minimum")
BN_ELEMENTS = 512


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The free dimensions to reduce, which must be the last ones."""
    given = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
    if any(not -ndim <= a < ndim for a in given):
        raise KernelError("out-of-range", f"axis = {axis} of data with {ndim} dimensions.")
    axes = tuple(sorted(int(a) % ndim for a in given))
    if not axes or axes != tuple(range(ndim - len(axes), ndim)) or 0 in axes:
        raise KernelError(
            "shape", f"axis = {axis} of {ndim} dimensions: only the last, free dimensions reduce."
        )
    return axes


@instruction
def tensor_reduce(
    dst: NkiTensor, op: Any, data: NkiTensor, axis: Any, negate: bool = False, keepdims: bool = False,
    name: str | None = None,
) -> Work:  # fmt: skip
    """Reduce the last free dimensions of data; `negate` multiplies the result by -1."""
    on_engine(Engine.vector, dst=dst, data=data)
    operation = reduction(op, "op")
    axes = reduced_axes(axis, data.ndim)
    kept = [n for i, n in enumerate(data.shape) if i not in axes]
    if (dst.partitions, dst.size) != (data.partitions, int(np.prod(kept))):
        raise KernelError(
            "shape", f"dst = {dst!r} must hold the {kept} elements that are left of data = {data!r}."
        )
    bitwise = is_bitwise(operation)
    if bitwise and not (data.dtype.is_integer and dst.itemsize == data.itemsize and dst.dtype.is_integer):
        raise KernelError(
            "dtype", f"nl.{operation} takes integers of one width: dst = {dst!r}, data = {data!r}."
        )
    elements, codes = stored(data) if bitwise else values(data)
    result = reduce_axis(operation, elements.reshape(data.shape), axes).reshape(dst.partitions, dst.columns)
    if codes is not None:
        codes = codes.reshape(data.shape).max(axis=axes).reshape(dst.partitions, dst.columns)
    if bitwise:
        store_integers(dst, result, codes)
    else:
        store(dst, -result if negate else result, codes)
    return Work(Engine.vector, (dst,), (data,))


@instruction
def tensor_scalar_reduce(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: NkiTensor | None = None,
    reverse0: bool = False,
    reduce_cmd: ReduceCmd = ReduceCmd.reset_reduce,
    reduce_init: Any = None,
    reduce_res_negate: bool = False,
    name: str | None = None,
) -> Work:
    """dst = data op0 operand0, and its reduction over all free dimensions into reduce_res (P, 1)."""
    on_engine(Engine.vector, dst=dst, data=data, reduce_res=reduce_res)
    same_elements(dst, data=data)
    if reverse0:
        raise KernelError("operand", "reverse0 is not supported by tensor_scalar_reduce.")
    operation = alu(op0, "op0")
    if is_bitwise(operation):
        raise KernelError("operator", f"op0 = nl.{operation}: arithmetic operations only.")
    joined = reduction(reduce_op, only=("add", "multiply", "maximum", "minimum"))
    elements, codes = values(data)
    result, codes, reads = chain(
        elements, codes, [(operation, operand0, False, "operand0")], data.partitions, Engine.vector
    )
    lanes = lanes_of(data)
    update_registers("vector", lanes, joined, result, codes, reduce_cmd, reduce_init)
    store(dst, result, codes)
    write_registers("vector", lanes, reduce_res, reduce_res_negate)
    results = (reduce_res,) if reduce_res is not None else ()
    return Work(Engine.vector, (dst, *results), (data, *reads))


@instruction
def tensor_scalar_cumulative(
    dst: NkiTensor,
    src: NkiTensor,
    op0: Any,
    op1: Any,
    imm0: Any,
    imm1: Any = None,
    reduce_cmd: ReduceCmd = ReduceCmd.reset_reduce,
    name: str | None = None,
) -> Work:
    """register = op1(op0(element, imm0), register), written each time; load_reduce starts from imm1."""
    on_engine(Engine.vector, dst=dst, src=src)
    same_elements(dst, src=src)
    if src.dtype in (int32, uint32) or dst.dtype in (int32, uint32):
        raise KernelError("dtype", f"src = {src!r}, dst = {dst!r}: 32-bit integers are not supported here.")
    operation, running = binary(op0, "op0"), reduction(op1, "op1", only=CUMULATIVE)
    elements, codes = values(src)
    result, codes, reads = chain(
        elements, codes, [(operation, imm0, False, "imm0")], src.partitions, Engine.vector
    )
    lanes = lanes_of(src)
    _prepare(lanes, running, reduce_cmd, imm1)
    registers = current_core().registers["vector"]
    out = np.empty_like(result)
    register = registers.values[lanes].copy()
    for i in range(result.shape[1]):
        register = apply(running, result[:, i], register)
        out[:, i] = register
    registers.values[lanes] = register
    if codes is not None:
        codes = np.maximum.accumulate(codes, axis=1)
    store(dst, out, codes)
    return Work(Engine.vector, (dst,), (src, *reads))


def _prepare(lanes: slice, operation: str, command: ReduceCmd, initial: Any) -> None:
    """Reset, load or keep the registers before a running reduction."""
    if command == ReduceCmd.idle:
        raise KernelError("reduction-register", "reduce_cmd.idle leaves nothing to accumulate into.")
    neutral = np.full((lanes.stop - lanes.start, 1), REDUCE[operation], np.float32)
    update_registers("vector", lanes, operation, neutral, None, command, initial)


@instruction
def tensor_tensor_scan(
    dst: NkiTensor,
    data0: NkiTensor,
    data1: NkiTensor,
    initial: Any,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> Work:
    """r[i] = (data0[i] op0 r[i - 1]) op1 data1[i], r[-1] = initial, along the free dimensions in fp32."""
    on_engine(Engine.vector, dst=dst, data0=data0, data1=data1)
    one_in_psum("data0", data0, "data1", data1)
    same_elements(dst, data0=data0, data1=data1)
    first, second = binary(op0, "op0"), binary(op1, "op1")
    (a, codes_a), (b, codes_b) = values(data0), values(data1)
    if isinstance(initial, NkiTensor):
        on_engine(Engine.vector, initial=initial)
    start, codes_start = scalar_or_vector("initial", initial, data0.partitions, fp32=False)
    running = np.array(np.broadcast_to(np.asarray(start, np.float32).reshape(-1), (data0.partitions,)))
    out = np.empty_like(a)
    for i in range(a.shape[1]):
        running = apply(second, apply(first, a[:, i], running, reverse0), b[:, i], reverse1)
        out[:, i] = running
    codes = merge(codes_a, codes_b)
    if codes is not None:
        codes = np.maximum.accumulate(codes, axis=1)
    store(dst, out, merge(codes, codes_start))
    reads = (initial,) if isinstance(initial, NkiTensor) else ()
    return Work(Engine.vector, (dst,), (data0, data1, *reads))


@instruction
def bn_stats(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> Work:
    """(count, mean, variance * count) of the elements at even positions, then of those at odd ones."""
    on_engine(Engine.vector, dst=dst, data=data)
    if data.columns > BN_ELEMENTS:
        raise KernelError(
            "shape", f"data = {data!r} has {data.columns} elements per partition; at most {BN_ELEMENTS}."
        )
    if (dst.partitions, dst.columns) != (data.partitions, 6):
        raise KernelError("shape", f"dst = {dst!r} must hold {data.partitions} x 6 elements.")
    elements, codes = values(data)
    statistics = []
    for part in (elements[:, 0::2], elements[:, 1::2]):
        count = part.shape[1]
        mean = part.mean(axis=1, dtype=np.float32) if count else np.zeros(len(part), np.float32)
        spread = np.square(part - mean[:, None]).sum(axis=1, dtype=np.float32)
        statistics += [np.full(len(part), count, np.float32), mean, spread]
    store(dst, np.stack(statistics, axis=1), None if codes is None else codes.max(axis=1, keepdims=True))
    return Work(Engine.vector, (dst,), (data,))


@instruction
def bn_aggr(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> Work:
    """Mean and population variance from any number of (count, mean, variance * count)."""
    on_engine(Engine.vector, dst=dst, data=data)
    if data.columns % 3 or (dst.partitions, dst.columns) != (data.partitions, 2):
        raise KernelError(
            "shape", f"data = {data!r} must hold triples, and dst = {dst!r} {data.partitions} x 2."
        )
    elements, codes = values(data)
    triples = elements.reshape(data.partitions, -1, 3)
    count, mean, spread = triples[..., 0], triples[..., 1], triples[..., 2]
    total = count.sum(axis=1, keepdims=True)
    overall = (count * mean).sum(axis=1, keepdims=True) / total
    variance = (spread + count * np.square(mean - overall)).sum(axis=1, keepdims=True) / total
    store(
        dst,
        np.concatenate([overall, variance], axis=1),
        None if codes is None else codes.max(axis=1, keepdims=True),
    )
    return Work(Engine.vector, (dst,), (data,))
