"""Races of the two cores that share HBM.

Between two of their meetings neither may touch what the other writes. A write that changes nothing is let
pass: both cores may do the same work.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.buffer import RaceMap
from omni_neuron.sim.numerics.formats import Array, storage_of

if TYPE_CHECKING:
    from omni_neuron.sim.execution.core import Core
    from omni_neuron.sim.memory.access import Place
    from omni_neuron.sim.memory.tensor import NkiTensor

BOTH = 3  # in the map of writers: both cores wrote the same


def _elements(view: "NkiTensor", offset: int, indices: Array | None, table: Array) -> Array:
    """The entries of a view in a table of the buffer's elements: a window, or a copy for gathered rows."""
    if indices is not None:
        return np.asarray(table[indices])
    size = table.itemsize
    data = table.view(np.uint8).data  # bfloat16 and its like export no buffer of their own
    return np.ndarray(view.shape, table.dtype, data, offset * size, [s * size for s in view.strides])


def _map(view: "NkiTensor") -> RaceMap:
    buffer = view.buffer_
    if buffer.races is None:
        buffer.races = RaceMap(buffer.size)
    return buffer.races


def _same_elements(view: "NkiTensor") -> bool:
    return view.itemsize == view.buffer_.dtype.itemsize


def note_read(core: "Core", view: "NkiTensor", place: "Place") -> None:
    if not _same_elements(view) or (view.buffer_.argument and not view.buffer_.written):
        return
    table = _map(view)
    indices = _reached(place, None)
    other = core.epoch * 4 + (1 - core.core_id) + 1
    if (_elements(view, place.offset, indices, table.writer) == other).any():
        raise _race(core, view, "reads what core", "wrote")
    if indices is not None:
        table.reader[core.core_id][indices] = core.epoch + 1
    else:
        _elements(view, place.offset, None, table.reader[core.core_id])[...] = core.epoch + 1


def note_write(core: "Core", view: "NkiTensor", place: "Place", stored: Array, mask: Array | None) -> None:
    """`mask` says which elements are written at all."""
    if not _same_elements(view):
        return
    table = _map(view)
    if mask is not None:
        stored = stored[mask if place.valid is None else mask & _rows(place)]
    elif place.valid is not None:
        stored = stored[place.valid]
    indices = _reached(place, mask)
    chosen = mask if indices is None else None
    writer = _elements(view, place.offset, indices, table.writer)
    writers = writer if chosen is None else writer[chosen]
    readers = _elements(view, place.offset, indices, table.reader[1 - core.core_id])
    both = core.epoch * 4 + BOTH
    written = (writers == core.epoch * 4 + (1 - core.core_id) + 1) | (writers == both)
    read = (readers if chosen is None else readers[chosen]) == core.epoch + 1
    if written.any() or read.any():
        storage = storage_of(view.dtype, view.buffer_.precise)
        now = _elements(view, place.offset, indices, view.buffer_.bytes.view(storage))
        changed = _bits(now if chosen is None else now[chosen]) != _bits(stored)
        if (written & changed).any():
            raise _race(core, view, "writes what core", "wrote")
        if (read & changed).any():
            raise _race(core, view, "writes what core", "read")
    mine: Any = core.epoch * 4 + core.core_id + 1
    if written.any():
        mine = np.where(written, both, mine)
    if indices is not None:
        table.writer[indices] = mine
    else:
        writer[... if chosen is None else chosen] = mine


def _rows(place: "Place") -> Array:
    """Rows that are in range, as a mask of the gathered elements."""
    assert place.indices is not None
    assert place.valid is not None
    return place.valid.reshape(-1, *[1] * (place.indices.ndim - 1))


def _reached(place: "Place", mask: Array | None) -> Array | None:
    """Indices of the elements that are touched, without rows that an index out of range skips."""
    if place.indices is None or (mask is None and place.valid is None):
        return place.indices
    if place.valid is None:
        return np.asarray(place.indices[mask])
    return np.asarray(place.indices[place.valid if mask is None else mask & _rows(place)])


def _bits(values: Array) -> Array:
    """Values as integers, so that NaN equals itself and -0 differs from 0."""
    return np.ascontiguousarray(values).view(np.dtype(f"u{values.dtype.itemsize}"))


def _race(core: "Core", view: "NkiTensor", what: str, did: str) -> KernelError:
    return KernelError(
        "race",
        f"core {core.core_id} {what} {1 - core.core_id} {did} in {view!r} with no nisa.core_barrier "
        f"between them.",
    )
