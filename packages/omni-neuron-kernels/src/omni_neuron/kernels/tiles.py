"""Pieces that several kernels are made of."""

from typing import Any

from omni_neuron.kernels.nki import nisa, nl

PARTITIONS = 128


def cores() -> tuple[int, int]:
    """Which physical core of the logical core this is, and how many there are."""
    if nl.program_ndim() == 0:
        return 0, 1
    return nl.program_id(0), nl.num_programs(0)


def share(count: int) -> tuple[int, int]:
    """The part of `count` pieces of work that this core does: first piece and the one after the last."""
    core, of = cores()
    each = -(-count // of)
    return min(core * each, count), min((core + 1) * each, count)


def own_rows(rows: int) -> list[Any]:
    """(start, size) of this core's tiles of at most 128 rows."""
    first, last = share(-(-rows // PARTITIONS))
    return [(t * PARTITIONS, min(PARTITIONS, rows - t * PARTITIONS)) for t in range(first, last)]


def broadcast_row(row: Any, width: int) -> Any:
    """An HBM vector `[width]` on all partitions: a tile `[128, width]` of its dtype."""
    tile = nl.ndarray((PARTITIONS, width), row.dtype)
    nisa.dma_copy(tile, row.ap([[0, PARTITIONS], [1, width]]))
    return tile
