"""The Tensor engine: matrix products into PSUM, and transposes."""

from dataclasses import replace

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import current_core
from omni_neuron.sim.memory.access import Codes, accumulated, locate, read, write
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.enums import Engine, PerfMode
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.operands import merge, rounded_as, spread, stored, values, warn
from omni_neuron.sim.nki.isa.rules import (
    PSUM,
    SBUF,
    choose_engine,
    in_memory,
    needs_generation,
    on_engine,
    partition_start,
)  # fmt: skip
from omni_neuron.sim.numerics.formats import (
    FP8,
    PE_WIDE,
    Array,
    bfloat16,
    float8_e4m3,
    float8_e4m3fn,
    float16,
    float32,
    to_float32,
)  # fmt: skip

PE_DTYPES = (*FP8, bfloat16, float16, *PE_WIDE)
VECTOR_TRANSPOSE = 32
FP32_PASSES = 4.0  # of the peak rates: 79 TFLOPS in bf16 and 20 in fp32


@instruction
def nc_matmul(
    dst: NkiTensor,
    stationary: NkiTensor,
    moving: NkiTensor,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    accumulate: bool | None = None,
    tile_position: tuple[int, ...] = (),
    tile_size: tuple[int, ...] = (),
    perf_mode: PerfMode | str = PerfMode.none,
    name: str | None = None,
) -> Work:
    """dst[M, N] (+)= stationary[K, M].T @ moving[K, N], summed in fp32."""
    double = perf_mode in (PerfMode.double_row, "double_row")
    if not double and perf_mode not in (PerfMode.none, "none", None):
        raise KernelError("operand", f"perf_mode = {perf_mode!r}: use none or double_row.")
    _check_operands(dst, stationary, moving)
    check_tile(tile_position, tile_size)
    left, left_codes = _rows(stationary, double)
    right, right_codes = _rows(moving, double)
    m, n = left.shape[1], right.shape[1]
    _check_sizes(dst, stationary.partitions, moving.partitions, m, n)
    if double:
        _check_double_row(stationary, moving)
    if is_transpose:
        if dst.dtype is not stationary.dtype:
            raise KernelError(
                "dtype", f"a transpose keeps the dtype: dst = {dst!r}, stationary = {stationary!r}."
            )
    elif dst.dtype is not float32 and not (current_core().generation >= 4 and dst.dtype is bfloat16):
        legal = "float32 or bfloat16" if current_core().generation >= 4 else "float32"
        raise KernelError("dtype", f"a matmul writes {legal}, and dst = {dst!r}.")
    if is_transpose and right.shape == (left.shape[0], left.shape[0]) and (right == np.eye(n)).all():
        elements, codes = stored(stationary)  # bits, also of NaN and infinity
        write(dst, elements.T, None if codes is None else codes.T)
        return Work(Engine.tensor, (dst,), (stationary, moving))
    product = left.T @ right
    codes = _product_codes(left_codes, right_codes, (m, n))
    wanted = accumulate if accumulate is None else bool(accumulate)
    accumulate_into(dst, product, codes, False if is_transpose else wanted)
    flops = 0 if is_transpose else 2 * m * n * left.shape[0]
    passes = FP32_PASSES if stationary.dtype is float32 or moving.dtype is float32 else 1.0
    return Work(
        Engine.tensor, (dst,), (stationary, moving), flops=flops, passes=passes / (2 if double else 1)
    )


def _rows(operand: NkiTensor, double: bool) -> tuple[Array, Codes | None]:
    """`[K, M]`; in double-row mode the `[K, 2, M]` of an operand as `[2 K, M]`."""
    if operand.free_index is not None:
        operand = operand.gathered(replace(operand.free_index, group=32))
    elements, codes = values(operand)
    if not double:
        return elements, codes
    if operand.ndim < 3 or operand.shape[1] != 2:
        raise KernelError("shape", f"double_row takes operands [K, 2, columns], not {operand!r}.")
    half = operand.columns // 2
    split = elements.reshape(operand.partitions * 2, half)
    return split, None if codes is None else codes.reshape(operand.partitions * 2, half)


def _product_codes(left: Codes | None, right: Codes | None, shape: tuple[int, int]) -> Codes | None:
    """An output is undefined where its column of stationary or its column of moving is."""
    across = None if left is None else left.max(axis=0)[:, None]
    down = None if right is None else right.max(axis=0)[None, :]
    return spread(merge(across, down), shape)


def _check_operands(dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor) -> None:
    in_memory("dst", dst, PSUM)
    in_memory("stationary", stationary, SBUF)
    in_memory("moving", moving, SBUF)
    for argument, operand in (("stationary", stationary), ("moving", moving), ("dst", dst)):
        partition_start(argument, operand)
    a, b = stationary.dtype, moving.dtype
    for argument, operand in (("stationary", stationary), ("moving", moving)):
        if operand.dtype not in PE_DTYPES:
            raise KernelError(
                "dtype", f"{argument} = {operand!r}: the PE takes fp8, bf16, fp16, tf32 and fp32."
            )
        if operand.dtype is float8_e4m3fn:
            needs_generation(4, "float8_e4m3fn as a matmul operand")
    if (a in PE_WIDE) != (b in PE_WIDE):
        raise KernelError(
            "dtype", f"stationary = {stationary!r}, moving = {moving!r}: fp32 pairs with fp32 or tf32."
        )
    if {a, b} == {float8_e4m3, float8_e4m3fn}:
        raise KernelError("dtype", "legacy float8_e4m3 and float8_e4m3fn do not mix in a matmul.")


def check_tile(position: tuple[int, ...] | None, size: tuple[int, ...] | None) -> None:
    """A part of the PE array: rows and columns of 32, 64 or 128 that start at a multiple of themselves."""
    if not size:
        if position and any(p % 32 or not 0 <= p < 128 for p in position):
            raise KernelError("matmul-limits", f"tile_position = {position}: use multiples of 32 below 128.")
        return
    place = tuple(position or (0, 0))
    if len(size) != 2 or len(place) != 2 or any(s not in (32, 64, 128) for s in size):
        raise KernelError("matmul-limits", f"tile_size = {size}: rows and columns are 32, 64 or 128.")
    if any(p % s or p + s > 128 for p, s in zip(place, size, strict=True)):
        raise KernelError("matmul-limits", f"tile_position = {place} does not fit tile_size = {size}.")


def _check_double_row(stationary: NkiTensor, moving: NkiTensor) -> None:
    needs_generation(3, "double_row")
    if stationary.dtype not in FP8 or moving.dtype not in FP8:
        raise KernelError("dtype", f"double_row takes fp8 operands, not {stationary!r} and {moving!r}.")


def _check_sizes(dst: NkiTensor, k: int, k_moving: int, m: int, n: int) -> None:
    if k != k_moving:
        raise KernelError(
            "shape", f"stationary has {k} rows (partitions) and moving {k_moving}: K must agree."
        )
    if k > 128 or m > 128:
        raise KernelError("matmul-limits", f"K = {k} and M = {m}: at most 128 each.")
    check_columns(dst, n)
    if (dst.partitions, dst.columns) != (m, n):
        raise KernelError("shape", f"dst = {dst!r} must hold {m} x {n} elements.")


def check_columns(dst: NkiTensor, n: int) -> None:
    """N per instruction, and up to trn2 one PSUM bank per output."""
    core = current_core()
    tensor = core.chip.core.tensor
    limit = tensor.moving_columns_bf16 if dst.dtype is bfloat16 and tensor.moving_columns_bf16 else None
    limit = limit or tensor.moving_columns_fp32
    if n > limit:
        raise KernelError("matmul-limits", f"N = {n}: at most {limit} columns of {dst.dtype!s} per matmul.")
    if core.generation >= 4:
        return
    bank = core.chip.core.memory.psum_bank_bytes
    base = dst.address[1] if dst.address else 0
    first = base + dst.offset % dst.row_elements * dst.itemsize
    last = first + (dst.free_span + 1) * dst.itemsize - 1
    if first // bank != last // bank:
        raise KernelError(
            "psum-bank",
            f"dst = {dst!r} covers bytes {first} to {last} of a partition, across banks of {bank}.",
        )


def _start_from_fill(dst: NkiTensor, mask: Array) -> None:
    """accumulate=True before any matmul: let be where memset or a copy has written, undefined up to trn2."""
    undefined = read(dst).undefined
    if undefined is not None and (undefined[~mask] != 0).any():
        raise KernelError(
            "psum-accumulate",
            f"accumulate=True on dst = {dst!r}, of which {int((~mask).sum())} elements no matmul has "
            f"written: "
            "start with accumulate=False.",
        )
    if current_core().generation <= 3:
        warn("accumulate=True adds to what another engine wrote: start with accumulate=False")
    mask[...] = True


def accumulate_into(dst: NkiTensor, product: Array, codes: Codes | None, accumulate: bool | None) -> None:
    """Write or add a product in PSUM, as `accumulate` says; None adds where a matmul has written before."""
    buffer = dst.buffer_
    offset = locate(dst).offset
    mask = accumulated(dst, offset)
    product = product.reshape(dst.shape)
    codes = None if codes is None else codes.reshape(dst.shape)
    everywhere = accumulate is not False and bool(mask.all())
    if accumulate is True and not everywhere:
        _start_from_fill(dst, mask)
        everywhere = True
    if everywhere or (accumulate is None and mask.any()):
        if accumulate is None and buffer.read_since_matmul:
            warn(f"accumulate=None adds to {dst!r}, which was read since; say accumulate=True or False")
        before = read(dst)
        old = to_float32(before.values)
        product = product + old if everywhere else np.where(mask, product + old, product)
        if before.undefined is not None:
            codes = merge(codes, np.where(mask, before.undefined, 0).astype(np.uint8))
    buffer.read_since_matmul = False
    write(dst, rounded_as(dst, product), spread(codes, dst.shape))
    mask[...] = True


@instruction
def nc_transpose(
    dst: NkiTensor, data: NkiTensor, engine: Engine = Engine.unknown, name: str | None = None
) -> Work:
    """dst[N, P] = data[P, N].T: on the PE from SBUF to PSUM up to 128 x 128, on Vector up to 32 x 32."""
    small = max(data.partitions, data.columns) <= VECTOR_TRANSPOSE
    to_psum = data.buffer is SBUF and dst.buffer is PSUM
    if engine == Engine.unknown:
        engine = Engine.tensor if to_psum and not small else Engine.vector if small else Engine.tensor
    chosen = choose_engine(engine, (Engine.tensor, Engine.vector))
    on_engine(chosen, dst=dst, data=data)
    limit = 128 if chosen is Engine.tensor else VECTOR_TRANSPOSE
    if data.partitions > limit or data.columns > limit:
        raise KernelError(
            "matmul-limits", f"data = {data!r}: this engine transposes up to {limit} x {limit}."
        )
    if chosen is Engine.tensor and not to_psum:
        raise KernelError(
            "memory-space", f"the PE transposes from SBUF to PSUM; data = {data!r}, dst = {dst!r}."
        )
    if dst.dtype is not data.dtype:
        raise KernelError("dtype", f"a transpose keeps the dtype: dst = {dst!r}, data = {data!r}.")
    if (dst.partitions, dst.columns) != (data.columns, data.partitions):
        raise KernelError("shape", f"dst = {dst!r} must hold {data.columns} x {data.partitions} elements.")
    if dst.buffer is PSUM:
        check_columns(dst, dst.columns)
    elements, codes = stored(data)
    write(dst, elements.T, None if codes is None else codes.T)
    return Work(chosen, (dst,), (data,))
