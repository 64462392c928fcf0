"""MX: quantisation to blocks with shared scales, and products of such blocks (trn3)."""

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.access import Codes, write
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.enums import Engine
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.matmul import accumulate_into, check_columns, check_tile
from omni_neuron.sim.nki.isa.operands import merge, spread, stored, values
from omni_neuron.sim.nki.isa.rules import PSUM, SBUF, in_memory, needs_generation, on_engine
from omni_neuron.sim.numerics.formats import (
    Array,
    bfloat16,
    float8_e4m3fn_x4,
    float8_e5m2_x4,
    float8_e8m0fnu,
    float16,
    float32,
    uint8,
)  # fmt: skip
from omni_neuron.sim.numerics.mx import GROUP_PARTITIONS, LANES, group_scales, pack, scale_rows, unpack

QUADRANT = 32
ROWS_PER_QUADRANT = QUADRANT // GROUP_PARTITIONS


def _scale_partitions(partitions: int) -> Array:
    """The partitions, within the scale tile, of the groups of a tile of data: 4 in each quadrant of 32."""
    groups = np.arange(partitions // GROUP_PARTITIONS)
    return groups // ROWS_PER_QUADRANT * QUADRANT + groups % ROWS_PER_QUADRANT


def _check_scale(argument: str, scale: NkiTensor, partitions: int, columns: int) -> Array:
    in_memory(argument, scale, SBUF)
    if scale.dtype not in (uint8, float8_e8m0fnu):
        raise KernelError("dtype", f"{argument} = {scale!r} must be uint8 or float8_e8m0fnu.")
    at = _scale_partitions(partitions)
    if scale.columns != columns or scale.partitions <= at.max():
        raise KernelError(
            "shape",
            f"{argument} = {scale!r} must have {columns} elements in at least {int(at.max()) + 1} "
            f"partitions.",
        )
    return at


@instruction
def quantize_mx(dst: NkiTensor, src: NkiTensor, dst_scale: NkiTensor, name: str | None = None) -> Work:
    """Quantise fp16 or bf16 to packed fp8: one scale for 8 partitions x 4 neighbouring elements."""
    needs_generation(4, "nisa.quantize_mx")
    on_engine(Engine.vector, dst=dst, src=src)
    if src.dtype not in (bfloat16, float16) or dst.dtype not in (float8_e4m3fn_x4, float8_e5m2_x4):
        raise KernelError("dtype", f"src = {src!r} must be bf16 or fp16, and dst = {dst!r} packed fp8.")
    if src.partitions % QUADRANT or src.columns % LANES:
        raise KernelError("shape", f"src = {src!r}: partitions in 32s and elements in 4s.")
    if (dst.partitions, dst.columns) != (src.partitions, src.columns // LANES):
        raise KernelError(
            "shape", f"dst = {dst!r} must hold {src.partitions} x {src.columns // LANES} elements."
        )
    at = _check_scale("dst_scale", dst_scale, src.partitions, dst.columns)
    elements, codes = values(src)
    lanes = elements.reshape(src.partitions, dst.columns, LANES)
    scales = group_scales(lanes, dst.dtype)
    packed = pack(lanes / scale_rows(scales, src.partitions)[..., None], dst.dtype)
    undefined, scale_codes = _group_codes(codes, src.partitions, dst.columns)
    write(dst, packed, undefined)
    for row, partition in enumerate(at):
        stored_scale = scales[row].view(dst_scale.dtype.storage)
        write(dst_scale[int(partition)], stored_scale, None if scale_codes is None else scale_codes[row])
    return Work(Engine.vector, (dst, dst_scale), (src,))


def _group_codes(codes: Codes | None, partitions: int, columns: int) -> tuple[Codes | None, Codes | None]:
    """Everything in a group hangs on everything in it, through the scale."""
    if codes is None:
        return None, None
    grouped = codes.reshape(partitions // GROUP_PARTITIONS, GROUP_PARTITIONS, columns, LANES).max(axis=(1, 3))
    return np.repeat(grouped, GROUP_PARTITIONS, axis=0), grouped


def _scaled(argument: str, operand: NkiTensor, scale: NkiTensor) -> tuple[Array, Codes | None]:
    """`[K, N, 4]` in fp32, and codes `[K, N]`."""
    in_memory(argument, operand, SBUF)
    if operand.dtype.kind != "packed":
        raise KernelError("dtype", f"{argument} = {operand!r} must be a packed (x4) dtype.")
    if operand.partitions % QUADRANT or operand.partitions > 128:
        raise KernelError("matmul-limits", f"{argument} = {operand!r}: 32, 64, 96 or 128 partitions.")
    at = _check_scale(f"{argument}_scale", scale, operand.partitions, operand.columns)
    elements, codes = stored(operand)
    factors, factor_codes = stored(scale)
    rows = scale_rows(np.ascontiguousarray(factors[at]).view(np.uint8), operand.partitions)
    spread_codes = None if factor_codes is None else np.repeat(factor_codes[at], GROUP_PARTITIONS, axis=0)
    if spread_codes is not None and not spread_codes.any():
        spread_codes = None
    return unpack(elements, operand.dtype) * rows[..., None], merge(codes, spread_codes)


@instruction
def nc_matmul_mx(
    dst: NkiTensor,
    stationary: NkiTensor,
    moving: NkiTensor,
    stationary_scale: NkiTensor,
    moving_scale: NkiTensor,
    tile_position: tuple[int, ...] | None = None,
    tile_size: tuple[int, ...] | None = None,
    accumulate: bool | None = None,
    name: str | None = None,
) -> Work:
    """dst[M, N] (+)= sum over partitions and packed lanes of scaled stationary times scaled moving."""
    needs_generation(4, "nisa.nc_matmul_mx")
    in_memory("dst", dst, PSUM)
    if dst.dtype not in (float32, bfloat16):
        raise KernelError("dtype", f"dst = {dst!r} must be float32 or bfloat16.")
    check_tile(tile_position, tile_size)
    left, left_codes = _scaled("stationary", stationary, stationary_scale)
    right, right_codes = _scaled("moving", moving, moving_scale)
    k, m = left.shape[:2]
    n = right.shape[1]
    if right.shape[0] != k:
        raise KernelError("shape", f"stationary has {k} partitions and moving {right.shape[0]}.")
    if m > 128 or m % 2:
        raise KernelError("matmul-limits", f"M = {m}: even, and at most 128.")
    check_columns(dst, n)
    if (dst.partitions, dst.columns) != (m, n):
        raise KernelError("shape", f"dst = {dst!r} must hold {m} x {n} elements.")
    product = np.tensordot(left, right, axes=([0, 2], [0, 2])).astype(np.float32)
    across = None if left_codes is None else left_codes.max(axis=0)[:, None]
    down = None if right_codes is None else right_codes.max(axis=0)[None, :]
    wanted = accumulate if accumulate is None else bool(accumulate)
    accumulate_into(dst, product, spread(merge(across, down), (m, n)), wanted)
    reads = (stationary, moving, stationary_scale, moving_scale)
    return Work(Engine.tensor, (dst,), reads, flops=2 * k * LANES * m * n)
