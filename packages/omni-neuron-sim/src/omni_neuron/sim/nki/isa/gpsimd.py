"""GpSimd: reductions across partitions and gathers within them."""

from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.access import write
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.arithmetic import is_bitwise, reduction
from omni_neuron.sim.nki.isa.elementwise import store_integers
from omni_neuron.sim.nki.isa.enums import Engine
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.operands import defined_integers, spread, store, stored, values
from omni_neuron.sim.nki.isa.rules import on_engine
from omni_neuron.sim.nki.language.operators import Operator
from omni_neuron.sim.numerics.alu import reduce_axis
from omni_neuron.sim.numerics.formats import int32, uint16, uint32

PARTITION_OPS = ("add", "maximum", "bitwise_or", "bitwise_and")
GROUP = 16


@instruction
def tensor_partition_reduce(dst: NkiTensor, op: Any, data: NkiTensor, name: str | None = None) -> Work:
    """Reduce over partitions: add, average, max, bitwise or, bitwise and; dst is one partition."""
    on_engine(Engine.gpsimd, dst=dst, data=data)
    average = isinstance(op, Operator) and op.name == "average"
    operation = "add" if average else reduction(op, "op", only=PARTITION_OPS)
    if (dst.partitions, dst.columns) != (1, data.columns):
        raise KernelError("shape", f"dst = {dst!r} must hold 1 x {data.columns} elements.")
    if is_bitwise(operation):
        if not (dst.dtype.is_integer and data.dtype.is_integer and dst.itemsize == data.itemsize):
            raise KernelError("dtype", f"nl.{operation} takes integers of one width: {dst!r}, {data!r}.")
        elements, codes = stored(data)
    else:
        elements, codes = values(data)
    result = reduce_axis(operation, elements, 0)
    down = None if codes is None else codes.max(axis=0, keepdims=True)
    if is_bitwise(operation):
        store_integers(dst, result, down)
    else:
        store(dst, result / np.float32(data.partitions) if average else result, down)
    return Work(Engine.gpsimd, (dst,), (data,))


@instruction
def nc_n_gather(dst: NkiTensor, data: NkiTensor, indices: NkiTensor, name: str | None = None) -> Work:
    """dst[p, i] = data[p, indices[p, i]] along the flattened free dimensions."""
    on_engine(Engine.gpsimd, dst=dst, data=data, indices=indices)
    if indices.dtype is not uint32 or dst.dtype is not data.dtype:
        raise KernelError(
            "dtype", f"indices = {indices!r} must be uint32, and dst of the dtype of data = {data!r}."
        )
    table = defined_integers("indices", indices)
    if table.shape != (dst.partitions, dst.columns) or data.partitions != dst.partitions:
        raise KernelError("shape", f"indices = {indices!r}, dst = {dst!r} and data = {data!r} do not fit.")
    if table.size and table.max() >= data.columns:
        raise KernelError("out-of-range", f"index {int(table.max())} of data = {data!r}.")
    elements, codes = stored(data)
    undefined = None if codes is None else np.take_along_axis(codes, table, axis=1)
    write(dst, np.take_along_axis(elements, table, axis=1), spread(undefined, table.shape))
    return Work(Engine.gpsimd, (dst,), (data, indices))


@instruction
def local_gather(
    dst: NkiTensor,
    src_buffer: NkiTensor,
    index: NkiTensor,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    name: str | None = None,
) -> Work:
    """Each group of 16 partitions gathers by its own list; index i of it is `index[16 g + i % 16, i //
    16]`."""
    on_engine(Engine.gpsimd, dst=dst, src_buffer=src_buffer, index=index)
    if index.dtype is not uint16 or dst.dtype is not src_buffer.dtype:
        raise KernelError(
            "dtype", f"index = {index!r} must be uint16, and dst of the dtype of {src_buffer!r}."
        )
    table = defined_integers("index", index)
    count = num_valid_indices if num_valid_indices is not None else GROUP * index.columns
    if count * num_elem_per_idx != dst.columns or dst.partitions != src_buffer.partitions:
        raise KernelError(
            "shape", f"{count} indices of {num_elem_per_idx} elements do not fill the rows of dst = {dst!r}."
        )
    elements, codes = stored(src_buffer)
    columns = np.empty((dst.partitions, dst.columns), np.int64)
    order = np.arange(count)
    for p in range(dst.partitions):
        group = p // GROUP * GROUP
        rows = group + order % GROUP
        if rows.max() >= table.shape[0]:
            raise KernelError("shape", f"index = {index!r} has no row {int(rows.max())}.")
        starts = table[rows, order // GROUP] * num_elem_per_idx
        columns[p] = (starts[:, None] + np.arange(num_elem_per_idx)).reshape(-1)
    if columns.max() >= src_buffer.columns:
        raise KernelError("out-of-range", f"element {int(columns.max())} of src_buffer = {src_buffer!r}.")
    undefined = None if codes is None else np.take_along_axis(codes, columns, axis=1)
    write(dst, np.take_along_axis(elements, columns, axis=1), spread(undefined, columns.shape))
    return Work(Engine.gpsimd, (dst,), (src_buffer, index))


@instruction
def sequence_bounds(dst: NkiTensor, segment_ids: NkiTensor, name: str | None = None) -> Work:
    """For each element where its run of equal ids starts and ends, dst `[P, 2, N]`; id 0 gives (N, -1)."""
    on_engine(Engine.gpsimd, dst=dst, segment_ids=segment_ids)
    count = segment_ids.columns
    if (dst.partitions, dst.columns) != (segment_ids.partitions, 2 * count):
        raise KernelError(
            "shape", f"dst = {dst!r} must hold {segment_ids.partitions} x 2 x {count} elements."
        )
    ids, codes = stored(segment_ids)
    bounds = np.empty((dst.partitions, 2, count), np.int64)
    for p, row in enumerate(ids):
        starts = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
        run = np.searchsorted(starts, np.arange(count), side="right") - 1
        bounds[p, 0] = np.where(row == 0, count, starts[run])
        bounds[p, 1] = np.where(row == 0, -1, np.append(starts[1:], count)[run])
    store(
        dst, bounds.reshape(dst.partitions, -1), None if codes is None else codes.max(axis=1, keepdims=True)
    )
    return Work(Engine.gpsimd, (dst,), (segment_ids,))


@instruction
def nonzero_with_count(
    dst: NkiTensor, src: NkiTensor, index_offset: int = 0, padding_val: int = -1, name: str | None = None
) -> Work:
    """Positions of the nonzero elements, padded, and their number at the end, dst `[P, N + 1]`.

    Only partitions 0, 16, 32, ... are read and written.
    """
    on_engine(Engine.gpsimd, dst=dst, src=src)
    if (dst.partitions, dst.columns) != (src.partitions, src.columns + 1) or dst.dtype is not int32:
        raise KernelError(
            "shape", f"dst = {dst!r} must be int32 and hold {src.partitions} x {src.columns + 1}."
        )
    elements, codes = stored(src)
    for p in range(0, src.partitions, GROUP):
        at = np.flatnonzero(elements[p])
        row = np.full(dst.columns, padding_val, np.int32)
        row[: at.size] = at + index_offset
        row[-1] = at.size
        write(dst[p], row, None if codes is None else spread(codes[p].max(keepdims=True), row.shape))
    return Work(Engine.gpsimd, (dst,), (src,))
