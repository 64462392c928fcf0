"""Reads and writes of tensors: bounds, run-time offsets, gathered rows, and what is defined.

A read returns the stored elements with a code for each that is not defined; instructions carry the codes
on, so that garbage is an error only where it reaches a result, a register or an address (docs/simulator.md).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import Core, current_core
from omni_neuron.sim.memory import aliasing, races
from omni_neuron.sim.memory.buffer import NEVER_WRITTEN, OVERWRITTEN
from omni_neuron.sim.memory.registers import VirtualRegister
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.numerics.formats import Array, storage_of

Codes = npt.NDArray[np.uint8]


@dataclass(slots=True)
class Content:
    """Stored elements of a view and, where some are undefined, the code of each (0 for defined)."""

    values: Array
    undefined: Codes | None = None


@dataclass(slots=True)
class Place:
    """Where the elements of a view lie: one window of strides, or an index of each element."""

    offset: int
    indices: npt.NDArray[np.int64] | None = None
    valid: npt.NDArray[np.bool_] | None = None  # rows that an out-of-range index skips are False


def scalar_value(source: Any) -> int:
    """The value of a register or of a 1x1 integer tensor."""
    if isinstance(source, VirtualRegister):
        return source.content
    if source.size != 1:
        raise KernelError("shape", f"{source!r} is used as a scalar and has {source.size} elements.")
    content = _steering(source, "an address")
    return int(content.values.reshape(-1)[0])


def require_defined(content: Content, tensor: NkiTensor, use: str) -> None:
    """Undefined data may pass through a machine, but not steer it."""
    if content.undefined is not None:
        origin = current_core().world.origins.describe(int(content.undefined.max()))
        raise KernelError("uninitialised", f"{tensor!r} is used as {use} and is not defined: {origin}.")


def _steering(tensor: NkiTensor, use: str) -> Content:
    """The content of a tensor that says where the running instruction reads or writes."""
    current_core().touch(tensor.buffer_)
    content = read(tensor)
    require_defined(content, tensor, use)
    return content


def locate(view: NkiTensor, skip_out_of_range: bool = False) -> Place:
    """Resolve run-time offsets and check the bounds."""
    offset = view.offset
    for scalar in view.scalar_offsets:
        value = scalar_value(scalar.source)
        if scalar.limit is not None and not 0 <= value < scalar.limit:
            raise KernelError(
                "out-of-range", f"a run-time offset of {value} into {view!r} must be below {scalar.limit}."
            )
        offset += value * scalar.multiplier
    if view.vector_offset is not None:
        return _gathered(view, offset, skip_out_of_range)
    if view.free_index is not None:
        return _free_gathered(view, offset)
    if not view.in_range:
        _check_bounds(view, offset)
        view.in_range = not view.scalar_offsets
    return Place(offset)


def _check_bounds(view: NkiTensor, offset: int) -> None:
    row = view.row_elements
    if view.on_chip:
        first, column = divmod(offset, row)
        rows = view.buffer_.shape[0]
        last = first + view.shape[0] - 1
        if offset < 0 or last >= rows:
            raise KernelError("out-of-range", f"partitions {first} to {last} of {view!r}, which has {rows}.")
        if column + view.free_span >= row:
            raise KernelError(
                "out-of-range",
                f"{view!r} reaches element {column + view.free_span} of a partition of {row} elements.",
            )
        return
    span = (view.shape[0] - 1) * view.strides[0] + view.free_span
    if offset < 0 or offset + span >= row:
        raise KernelError("out-of-range", f"{view!r} reaches element {offset + span} of {row} in HBM.")


def _inner_offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> npt.NDArray[np.int64]:
    total = np.zeros(shape, dtype=np.int64)
    for dim, (n, stride) in enumerate(zip(shape, strides, strict=True)):
        total += (np.arange(n, dtype=np.int64) * stride).reshape(
            [-1 if i == dim else 1 for i in range(len(shape))]
        )
    return total


def _gathered(view: NkiTensor, offset: int, skip: bool) -> Place:
    rows = view.vector_offset
    assert rows is not None
    content = _steering(rows.index, "row indices")
    index = content.values.reshape(rows.index.shape[0], -1).T.reshape(-1).astype(np.int64)
    if index.size != view.shape[0]:
        raise KernelError("shape", f"{index.size} row indices for the {view.shape[0]} rows of {view!r}.")
    valid = (index >= 0) & (index < rows.rows)
    if not valid.all() and not skip:
        bad = int(index[~valid][0])
        raise KernelError(
            "out-of-range",
            f"row index {bad} (position {int(np.argmin(valid))}) of {view!r}, which has {rows.rows} rows; "
            "oob_mode.skip would leave such rows alone.",
        )
    start = np.where(valid, index, 0) * rows.row_elements + offset
    inner = _inner_offsets(view.shape[1:], view.strides[1:])
    indices = start.reshape(-1, *[1] * inner.ndim) + inner[None]
    if indices.max() >= view.row_elements or indices.min() < 0:
        raise KernelError("out-of-range", f"gathered rows of {view!r} reach element {int(indices.max())}.")
    return Place(offset, indices, None if valid.all() else valid)


def _free_gathered(view: NkiTensor, offset: int) -> Place:
    free = view.free_index
    assert free is not None
    content = _steering(free.index, "indices")
    table = content.values.reshape(free.index.shape[0], -1).astype(np.int64)
    group = free.group
    _, column = divmod(offset, view.row_elements)
    positions = np.arange(free.num_elem)
    indices = np.empty(view.shape, dtype=np.int64)
    for p in range(view.shape[0]):
        base = p // group * group if table.shape[0] > group else 0
        chosen = table[base + positions % group, positions // group]
        if chosen.min() < 0 or column + chosen.max() >= view.row_elements:
            raise KernelError("out-of-range", f"indirect index {int(chosen.max())} of {view!r}.")
        indices[p] = offset + p * view.row_elements + chosen
    return Place(offset, indices)


def _window(view: NkiTensor, offset: int) -> Array:
    buffer = view.buffer_
    storage = storage_of(view.dtype, buffer.precise)
    size = storage.itemsize
    strides = [s * size for s in view.strides]
    return np.ndarray(view.shape, storage, buffer.bytes.data, offset * size, strides)


def _granules(view: NkiTensor, offset: int) -> Codes:
    """The codes of a view's elements, with the granules of one element as a last dimension."""
    buffer = view.buffer_
    buffer.split_granules(view.itemsize)
    each = view.itemsize // buffer.granule
    strides = [*(s * each for s in view.strides), 1]
    return np.ndarray((*view.shape, each), np.uint8, buffer.undefined.data, offset * each, strides)


def read(view: NkiTensor, skip_out_of_range: bool = False) -> Content:
    """The stored elements, shaped as the view."""
    core = current_core()
    place = locate(view, skip_out_of_range)
    buffer = view.buffer_
    if core.lnc > 1 and buffer.space is MemorySpace.shared_hbm:
        races.note_read(core, view, place)
    if buffer.space is MemorySpace.psum:
        buffer.read_since_matmul = True
    if place.indices is not None:
        flat = buffer.bytes.view(storage_of(view.dtype, buffer.precise))
        codes = None
        if not buffer.complete:
            buffer.split_granules(view.itemsize)
            each = view.itemsize // buffer.granule
            codes = _origins(core, view, buffer.undefined.reshape(-1, each)[place.indices].max(axis=-1))
        return Content(flat[place.indices], codes)
    codes = None if buffer.complete else _codes(core, view, place.offset)
    return Content(_window(view, place.offset), codes)


def _codes(core: Core, view: NkiTensor, offset: int) -> Codes | None:
    granules = _granules(view, offset)
    if not granules.any():
        if (
            view.size * view.itemsize == view.buffer_.size * view.buffer_.dtype.itemsize
            and 0 not in view.strides
        ):
            view.buffer_.complete = True
        return None
    return _origins(core, view, granules[..., 0] if granules.shape[-1] == 1 else granules.max(axis=-1))


def _origins(core: Core, view: NkiTensor, codes: Codes) -> Codes | None:
    """Codes of a buffer as codes of the launch: which buffer it was, and where it was read."""
    if not codes.any():
        return None
    found = codes.copy()
    origins = core.world.origins
    for kind, why in ((NEVER_WRITTEN, "never written"), (OVERWRITTEN, view.buffer_.overwritten_by)):
        where = codes == kind
        if where.any():
            found[where] = origins.code(view.buffer_, why, core)
    return found


def write(
    view: NkiTensor,
    stored: Array,
    undefined: Codes | None = None,
    mask: npt.NDArray[np.bool_] | None = None,
    skip_out_of_range: bool = False,
    synchronised: bool = False,
) -> None:
    """Store elements that are encoded already; `mask` says which to write at all.

    A write is `synchronised` when both cores of the rank have come to it, as they have to a collective.
    """
    core = current_core()
    if 0 in view.strides and view.vector_offset is None and _repeats(view):
        raise KernelError("access-pattern", f"{view!r} repeats elements (stride 0), so it cannot be written.")
    place = locate(view, skip_out_of_range)
    buffer = view.buffer_
    stored = stored.reshape(view.shape)
    if undefined is not None:
        undefined = undefined.reshape(view.shape)
    if core.lnc > 1 and buffer.space is MemorySpace.shared_hbm and not synchronised:
        written = None if mask is None else np.broadcast_to(mask, view.shape)
        races.note_write(core, view, place, stored, written)
    buffer.written = True
    if undefined is not None:
        buffer.complete = False
    if place.indices is not None:
        _scatter(view, place, stored, undefined, mask)
    else:
        window = _window(view, place.offset)
        if mask is None:
            window[...] = stored
        else:
            np.copyto(window, stored, where=mask)
        if not buffer.complete:
            _mark(view, place.offset, undefined, mask)
    if buffer.space is MemorySpace.psum and buffer.accumulated is not None and place.indices is None:
        accumulated(view, place.offset)[...] = False
    if buffer.address is not None:
        aliasing.overwrite_neighbours(core, view, place.offset)


def _repeats(view: NkiTensor) -> bool:
    return any(stride == 0 and size > 1 for size, stride in zip(view.shape, view.strides, strict=True))


def _mark(view: NkiTensor, offset: int, undefined: Codes | None, mask: npt.NDArray[np.bool_] | None) -> None:
    granules = _granules(view, offset)
    codes: Any = 0 if undefined is None else undefined[..., None]
    if mask is None:
        granules[...] = codes
        if (
            undefined is None
            and view.is_contiguous()
            and view.size * view.itemsize == (view.buffer_.size * view.buffer_.dtype.itemsize)
        ):
            view.buffer_.complete = True
    else:
        np.copyto(granules, codes, where=mask[..., None])


def _scatter(
    view: NkiTensor, place: Place, stored: Array, undefined: Codes | None, mask: npt.NDArray[np.bool_] | None
) -> None:
    assert place.indices is not None
    buffer = view.buffer_
    chosen = np.ones(view.shape, dtype=bool) if mask is None else np.broadcast_to(mask, view.shape).copy()
    if place.valid is not None:
        chosen &= place.valid.reshape(-1, *[1] * (len(view.shape) - 1))
    at = place.indices[chosen]
    buffer.bytes.view(storage_of(view.dtype, buffer.precise))[at] = stored[chosen]
    buffer.split_granules(view.itemsize)
    each = view.itemsize // buffer.granule
    codes = np.zeros(at.shape, np.uint8) if undefined is None else undefined[chosen]
    buffer.undefined.reshape(-1, each)[at] = codes[:, None]


def accumulated(view: NkiTensor, offset: int) -> Array:
    """Which elements of a PSUM view a matmul has written, as a window that can be assigned to."""
    buffer = view.buffer_
    if buffer.accumulated is None:
        buffer.accumulated = np.zeros(buffer.size, dtype=np.bool_)
    ratio = view.itemsize / buffer.dtype.itemsize
    if ratio != 1:
        raise KernelError("dtype", f"a matmul writes {view!r}, whose tensor is {buffer.dtype!s}.")
    return np.ndarray(view.shape, np.bool_, buffer.accumulated.data, offset, view.strides)


def bounding_box(view: NkiTensor, offset: int) -> tuple[int, int, int, int]:
    """First and last partition and first and last byte within a partition (row 0 and flat bytes in HBM)."""
    size = view.itemsize
    span = view.free_span
    if not view.on_chip:
        span += (view.shape[0] - 1) * view.strides[0]
        return 0, 0, offset * size, (offset + span + 1) * size - 1
    first, column = divmod(offset, view.row_elements)
    return first, first + view.shape[0] - 1, column * size, (column + span + 1) * size - 1
