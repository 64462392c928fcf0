"""Races of the two cores that share HBM.

Between two of their meetings neither may touch what the other writes; a write of the same bytes is let pass.
"""

from typing import TYPE_CHECKING

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.buffer import RaceMap
from omni_neuron.sim.numerics.formats import Array, storage_of

if TYPE_CHECKING:
    from omni_neuron.sim.execution.core import Core
    from omni_neuron.sim.memory.tensor import NkiTensor


def _elements(view: "NkiTensor", offset: int, indices: Array | None, table: Array) -> Array:
    """The entries of a view in a table of the buffer's elements: a window, or a copy for gathered rows."""
    if indices is not None:
        return np.asarray(table[indices])
    size = table.itemsize
    return np.ndarray(view.shape, table.dtype, table.data, offset * size, [s * size for s in view.strides])


def _map(view: "NkiTensor") -> RaceMap:
    buffer = view.buffer_
    if buffer.races is None:
        buffer.races = RaceMap(buffer.size)
    return buffer.races


def _same_elements(view: "NkiTensor") -> bool:
    return view.itemsize == view.buffer_.dtype.itemsize


def note_read(core: "Core", view: "NkiTensor", offset: int, indices: Array | None) -> None:
    if not _same_elements(view) or (view.buffer_.argument and not view.buffer_.written):
        return
    table = _map(view)
    other = core.epoch * 4 + (1 - core.core_id) + 1
    if (_elements(view, offset, indices, table.writer) == other).any():
        raise _race(core, view, "reads what core", "wrote")
    if indices is not None:
        table.reader[core.core_id][indices] = core.epoch + 1
    else:
        _elements(view, offset, None, table.reader[core.core_id])[...] = core.epoch + 1


def note_write(core: "Core", view: "NkiTensor", offset: int, indices: Array | None, stored: Array) -> None:
    if not _same_elements(view):
        return
    table = _map(view)
    other = core.epoch * 4 + (1 - core.core_id) + 1
    clash = _elements(view, offset, indices, table.writer) == other
    if clash.any():
        now = _elements(
            view, offset, indices, view.buffer_.bytes.view(storage_of(view.dtype, view.buffer_.precise))
        )
        if (now[clash] != stored[clash]).any():
            raise _race(core, view, "writes what core", "wrote")
    if (_elements(view, offset, indices, table.reader[1 - core.core_id]) == core.epoch + 1).any():
        raise _race(core, view, "writes what core", "read")
    mine = core.epoch * 4 + core.core_id + 1
    if indices is not None:
        table.writer[indices] = mine
    else:
        _elements(view, offset, None, table.writer)[...] = mine


def _race(core: "Core", view: "NkiTensor", what: str, did: str) -> KernelError:
    return KernelError(
        "race",
        f"core {core.core_id} {what} {1 - core.core_id} {did} in {view!r} with no nisa.core_barrier "
        f"between them.",
    )
