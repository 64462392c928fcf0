"""Largest values, their positions, and replacing them. Equal values keep their order."""

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.access import Codes
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.enums import Engine
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.operands import merge, rows, store, values
from omni_neuron.sim.nki.isa.rules import on_engine, per_partition, same_elements
from omni_neuron.sim.numerics.formats import Array

EIGHT = 8
FEWEST, MOST = 8, 16384


def _check_length(argument: str, tensor: NkiTensor) -> None:
    if not FEWEST <= tensor.columns <= MOST:
        raise KernelError(
            "shape",
            f"{argument} = {tensor!r} has {tensor.columns} elements per partition; {FEWEST} to {MOST} "
            f"are legal.",
        )


@instruction
def max8(dst: NkiTensor, src: NkiTensor, name: str | None = None) -> Work:
    """The 8 largest elements of each partition, descending."""
    on_engine(Engine.vector, dst=dst, src=src)
    _check_length("src", src)
    per_partition("dst", dst, src.partitions, EIGHT)
    elements, codes = values(src)
    store(dst, -np.sort(-elements, axis=1)[:, :EIGHT], rows(codes))
    return Work(Engine.vector, (dst,), (src,))


def _matches(data: Array, wanted: Array) -> Array:
    """For each of 8 values the position of its first element not yet taken, -1 where there is none."""
    found = np.full(wanted.shape, -1, np.int64)
    for p in range(data.shape[0]):
        taken: set[int] = set()
        for k in range(wanted.shape[1]):
            for position in np.flatnonzero(data[p] == wanted[p, k]):
                if int(position) not in taken:
                    found[p, k] = position
                    taken.add(int(position))
                    break
    return found


@instruction
def nc_find_index8(dst: NkiTensor, data: NkiTensor, vals: NkiTensor, name: str | None = None) -> Work:
    """Positions of 8 values; equal ones find successive elements, missing ones give all ones."""
    on_engine(Engine.vector, dst=dst, data=data, vals=vals)
    _check_length("data", data)
    per_partition("vals", vals, data.partitions, EIGHT)
    per_partition("dst", dst, data.partitions, EIGHT)
    if not dst.dtype.is_integer:
        raise KernelError("dtype", f"dst = {dst!r} must hold integers.")
    (elements, codes), (wanted, more) = values(data), values(vals)
    found = _matches(elements, wanted)
    sentinel = -1 if dst.dtype.storage.kind == "i" else int(dst.dtype.largest)
    store(dst, np.where(found < 0, sentinel, found), merge(rows(codes), rows(more)))
    return Work(Engine.vector, (dst,), (data, vals))


@instruction
def nc_match_replace8(
    dst: NkiTensor,
    data: NkiTensor,
    vals: NkiTensor,
    imm: float,
    dst_idx: NkiTensor | None = None,
    name: str | None = None,
) -> Work:
    """dst = data with the first match of each value replaced by imm, from value 7 down to value 0."""
    on_engine(Engine.vector, dst=dst, data=data, vals=vals, dst_idx=dst_idx)
    same_elements(dst, data=data)
    per_partition("vals", vals, data.partitions, EIGHT)
    (elements, codes), (wanted, more) = values(data), values(vals)
    found = _matches(elements, wanted[:, ::-1])[:, ::-1]
    result = np.array(elements)
    for p, k in zip(*np.nonzero(found >= 0), strict=True):
        result[p, found[p, k]] = np.float32(imm)
    undefined: Codes | None = merge(codes, rows(more))
    store(dst, result, undefined)
    written = [dst]
    if dst_idx is not None:
        per_partition("dst_idx", dst_idx, data.partitions, EIGHT)
        sentinel = -1 if dst_idx.dtype.storage.kind == "i" else int(dst_idx.dtype.largest)
        store(dst_idx, np.where(found < 0, sentinel, found), rows(undefined))
        written.append(dst_idx)
    return Work(Engine.vector, tuple(written), (data, vals))


@instruction
def topk(val_dst: NkiTensor, idx_dst: NkiTensor, src: NkiTensor, n: int, name: str | None = None) -> Work:
    """The n largest elements of each partition, descending, and their positions."""
    on_engine(Engine.gpsimd, val_dst=val_dst, idx_dst=idx_dst, src=src)
    if not 1 <= n <= src.columns:
        raise KernelError("shape", f"n = {n} of the {src.columns} elements of src = {src!r}.")
    per_partition("val_dst", val_dst, src.partitions, n)
    per_partition("idx_dst", idx_dst, src.partitions, n)
    elements, codes = values(src)
    order = np.argsort(-elements, axis=1, kind="stable")[:, :n]
    store(val_dst, np.take_along_axis(elements, order, axis=1), rows(codes))
    store(idx_dst, order, rows(codes))
    return Work(Engine.gpsimd, (val_dst, idx_dst), (src,))
