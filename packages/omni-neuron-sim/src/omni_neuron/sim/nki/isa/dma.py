"""DMA: copies between HBM and SBUF, gathers and scatters, transposes, sums on the way."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.access import Codes, locate, read, write
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.arithmetic import alu
from omni_neuron.sim.nki.isa.enums import DgeMode, Engine, OobMode
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.operands import merge
from omni_neuron.sim.nki.isa.rules import in_memory, needs_generation
from omni_neuron.sim.numerics.formats import Array, encode, to_float32

REACHED = (MemorySpace.sbuf, MemorySpace.private_hbm, MemorySpace.shared_hbm)
MOST_SOURCES = 16


def _converted(src: NkiTensor, elements: Array, dst: NkiTensor) -> Array:
    """Elements of src as dst keeps them: the same bits, or through fp32."""
    if src.dtype is dst.dtype:
        return elements
    if "packed" in (src.dtype.kind, dst.dtype.kind):
        raise KernelError("dtype", f"src = {src!r} and dst = {dst!r}: packed dtypes cannot be converted.")
    return encode(to_float32(elements), dst.dtype, dst.buffer_.precise)


@instruction
def dma_copy(
    dst: NkiTensor,
    src: NkiTensor,
    priority: int | None = None,
    oob_mode: OobMode = OobMode.error,
    dge_mode: DgeMode = DgeMode.unknown,
    engine: Engine = Engine.unknown,
    name: str | None = None,
) -> Work:
    """Copy elements in order between HBM and SBUF; rows may be gathered or scattered by a vector_offset."""
    in_memory("dst", dst, *REACHED)
    in_memory("src", src, *REACHED)
    _check_queue(dst, src, priority, dge_mode, engine)
    if dst.size != src.size:
        raise KernelError("shape", f"dst = {dst!r} has {dst.size} elements and src = {src!r} {src.size}.")
    skip = oob_mode is OobMode.skip
    content = read(src, skip)
    mask = None
    if skip and src.vector_offset is not None:
        valid = locate(src, True).valid
        if valid is not None:
            rows = np.broadcast_to(valid.reshape(-1, *[1] * (src.ndim - 1)), src.shape)
            mask = rows.reshape(dst.shape)
    elements = _converted(src, content.values, dst)
    write(dst, elements.reshape(dst.shape), content.undefined, mask, skip)
    return Work(Engine.dma, (dst,), (src,))


def _check_queue(dst: NkiTensor, src: NkiTensor, priority: int | None, mode: DgeMode, engine: Engine) -> None:
    if priority is not None:
        needs_generation(4, "DMA priority")
    if mode is DgeMode.hwdge and src.dtype is not dst.dtype:
        raise KernelError("dtype", f"hwdge copies bits: src = {src!r} and dst = {dst!r} must have one dtype.")
    if mode is DgeMode.hwdge and (src.vector_offset or dst.vector_offset):
        raise KernelError(
            "dge-mode", "hwdge does not gather or scatter rows: use dge_mode.swdge or leave it open."
        )
    if engine not in (Engine.unknown, Engine.dma, Engine.gpsimd) and not (
        mode in (DgeMode.hwdge, DgeMode.unknown) and engine in (Engine.sync, Engine.scalar)
    ):
        raise KernelError(
            "engine", f"engine {Engine(engine).name} cannot start this DMA: use sync, scalar or gpsimd."
        )


_AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


@instruction
def dma_transpose(
    dst: NkiTensor,
    src: NkiTensor,
    axes: Sequence[int] | None = None,
    priority: int | None = None,
    dge_mode: DgeMode = DgeMode.unknown,
    oob_mode: OobMode = OobMode.error,
    name: str | None = None,
) -> Work:
    """Transpose on the way to SBUF: 2-D swaps, 3-D is (2, 1, 0), 4-D (3, 1, 2, 0) of the source."""
    in_memory("dst", dst, MemorySpace.sbuf)
    in_memory("src", src, *REACHED)
    if priority is not None:
        needs_generation(4, "DMA priority")
    order = _AXES.get(src.ndim)
    if order is None or (axes is not None and tuple(axes) != order):
        raise KernelError("access-pattern", f"axes = {axes} of src = {src!r}: a DMA transposes by {_AXES}.")
    if dst.shape != tuple(src.shape[i] for i in order):
        raise KernelError("shape", f"dst = {dst!r} must have the shape {[src.shape[i] for i in order]}.")
    if dst.dtype is not src.dtype:
        raise KernelError("dtype", f"dst = {dst!r} and src = {src!r} must have one dtype.")
    if dge_mode is DgeMode.hwdge:
        _check_hardware_transpose(src)
    skip = oob_mode is OobMode.skip
    content = read(src, skip)
    mask = None
    if skip and src.vector_offset is not None and (valid := locate(src, True).valid) is not None:
        rows = np.broadcast_to(valid.reshape(-1, *[1] * (src.ndim - 1)), src.shape)
        mask = rows.transpose(order)
    codes = None if content.undefined is None else content.undefined.transpose(order)
    write(dst, content.values.transpose(order), codes, mask)
    return Work(Engine.dma, (dst,), (src,))


def _check_hardware_transpose(src: NkiTensor) -> None:
    rows, columns = src.shape[0], src.shape[-1]
    legal = (16,) if src.ndim == 2 else (1, 2, 4, 8, 16)
    if rows not in legal or rows * src.shape[-2] % 16 or columns > 128 or src.itemsize != 2:
        raise KernelError(
            "dge-mode",
            f"hwdge transposes {legal} rows of up to 128 elements of 2 bytes, in blocks of 16; src = "
            f"{src!r}.",
        )


@instruction
def dma_compute(
    dst: NkiTensor,
    srcs: Sequence[NkiTensor],
    reduce_op: Any,
    scales: Sequence[float] | None = None,
    unique_indices: bool = True,
    oob_mode: OobMode = OobMode.error,
    name: str | None = None,
) -> Work:
    """dst = sum of up to 16 sources in fp32; with a vector_offset a read-modify-write of gathered rows."""
    in_memory("dst", dst, *REACHED)
    if alu(reduce_op, "reduce_op") != "add":
        raise KernelError("operator", f"reduce_op = {reduce_op!r}: a DMA only adds.")
    if scales is not None and any(scale != 1.0 for scale in scales):
        raise KernelError("operand", f"scales = {list(scales)} must all be 1.0.")
    sources = tuple(srcs)
    if not 1 <= len(sources) <= MOST_SOURCES:
        raise KernelError("operand", f"{len(sources)} sources; a DMA takes 1 to {MOST_SOURCES}.")
    if any(s.vector_offset is not None for s in sources) and len(sources) != 2:
        raise KernelError("operand", f"{len(sources)} sources; a gathered sum takes exactly 2.")
    skip = oob_mode is OobMode.skip
    for i, source in enumerate(sources):
        in_memory(f"srcs[{i}]", source, *REACHED)
        if source.size != dst.size:
            raise KernelError(
                "shape", f"srcs[{i}] = {source!r} has {source.size} elements and dst {dst.size}."
            )
    if dst.vector_offset is not None and not unique_indices:
        stored, codes = _added_one_by_one(dst, sources, skip)
    else:
        total, codes = _sum(dst, sources, skip)
        stored = encode(total, dst.dtype, dst.buffer_.precise)
    write(dst, stored, codes, None, skip)
    return Work(Engine.dma, (dst,), sources)


def _sum(dst: NkiTensor, sources: tuple[NkiTensor, ...], skip: bool) -> tuple[Array, Codes | None]:
    contents = [read(source, skip) for source in sources]
    total = np.zeros(dst.shape, np.float32)
    for content in contents:
        total += to_float32(content.values).reshape(dst.shape)
    return total, merge(*(c.undefined.reshape(dst.shape) for c in contents if c.undefined is not None))


def _added_one_by_one(
    dst: NkiTensor, sources: tuple[NkiTensor, ...], skip: bool
) -> tuple[Array, Codes | None]:
    """What the rows of dst are at the end, where one that occurs several times is added to several times."""
    total, added = _sum(dst, tuple(s for s in sources if s.vector_offset is None), skip)
    place, before = locate(dst, skip), read(dst, skip)
    assert place.indices is not None
    _, first, which = np.unique(
        place.indices.reshape(dst.shape[0], -1)[:, 0], return_index=True, return_inverse=True
    )
    stored = before.values[first]
    codes = None if before.undefined is None else before.undefined[first]
    if added is not None:
        codes = np.zeros(stored.shape, np.uint8) if codes is None else codes
        np.maximum.at(codes, which, added)
    for row, target in enumerate(which):
        if place.valid is None or place.valid[row]:
            stored[target] = encode(to_float32(stored[target]) + total[row], dst.dtype, dst.buffer_.precise)
    return stored[which], None if codes is None else codes[which]
