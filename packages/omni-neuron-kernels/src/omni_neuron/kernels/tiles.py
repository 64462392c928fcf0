"""Pieces that several kernels are made of."""

from typing import Any

from omni_neuron.kernels.limits import BANK_COLUMNS, PARTITIONS, ceil_div
from omni_neuron.kernels.nki import nisa, nl

RESERVE = 4096  # bytes of a partition left for small tiles outside of rotations


def cores() -> tuple[int, int]:
    """Which physical core of the logical core this is, and how many there are."""
    if nl.program_ndim() == 0:
        return 0, 1
    return nl.program_id(0), nl.num_programs(0)


def share(count: int) -> tuple[int, int]:
    """The part of `count` pieces of work that this core does: first piece and the one after the last."""
    core, of = cores()
    each = ceil_div(count, of)
    return min(core * each, count), min((core + 1) * each, count)


def own_rows(rows: int) -> list[Any]:
    """(start, size) of this core's tiles of at most 128 rows."""
    first, last = share(ceil_div(rows, PARTITIONS))
    return [(t * PARTITIONS, min(PARTITIONS, rows - t * PARTITIONS)) for t in range(first, last)]


def broadcast_row(row: Any, first: int, width: int) -> Any:
    """Elements `first` to `first + width` of an HBM vector on all partitions: `[128, width]` of its dtype."""
    tile = nl.ndarray((PARTITIONS, width), row.dtype)
    # The offset is that of the whole vector: the documents disagree whether `ap` keeps the offset of a view.
    nisa.dma_copy(tile, row.ap([[0, PARTITIONS], [1, width]], offset=first))
    return tile


def row_of_ones() -> Any:
    """fp32 `[1, 128]` of ones, which `spread_row` multiplies with."""
    ones = nl.ndarray((1, PARTITIONS), nl.float32)
    nisa.memset(ones, 1.0)
    return ones


def spread_row(row: Any, ones: Any, offset: float = 0.0) -> Any:
    """An fp32 HBM vector `[width]`, plus `offset`, on all partitions: a product on the idle PE.

    It moves `width` elements, where the DMA of `broadcast_row` writes 128 times as many.
    """
    width = row.shape[0]
    tile = nl.ndarray((PARTITIONS, width), nl.float32)
    for first in range(0, width, BANK_COLUMNS):
        columns = min(BANK_COLUMNS, width - first)
        part = nl.ds(first, columns)
        piece = nl.ndarray((1, columns), nl.float32)
        nisa.dma_copy(piece, row.reshape((1, width))[:, part])
        spread = nl.ndarray((PARTITIONS, columns), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(spread, ones, piece, accumulate=False)
        nisa.activation(tile[:, part], nl.copy, spread, bias=offset)
    return tile


def itemsize(dtype: Any) -> int:
    """Bytes of one element, of the dtypes that kernels take and compute in."""
    return 4 if dtype == nl.float32 else 2


def tiles_of(count: int, shape: tuple[int, ...], dtype: Any) -> list[Any]:
    """So many tiles of one shape in SBUF."""
    tiles = []
    for _ in range(count):
        tiles.append(nl.ndarray(shape, dtype))
    return tiles


def rotation(width: int, dtype: Any, count: int, sets: int = 1, beside: int = 0) -> list[Any]:
    """Tiles `[128, width]` for the steps of a loop to take in turn, so that four steps are under way at once.

    Fewer where the loop has fewer than four steps, or where `sets` rotations of this size do not fit with
    `beside` bytes of a partition next to them.
    """
    room = (nl.tile_size.sbuf_fmax_bytes - beside - RESERVE) // (sets * width * itemsize(dtype))
    return tiles_of(max(1, min(4, count, room)), (PARTITIONS, width), dtype)


def turn(tiles: list[Any], index: int, rows: int) -> Any:
    """What step `index` takes of a rotation: a tile of so many rows."""
    return tiles[index % len(tiles)][0:rows]


def staggered(count: int, stages: int, depth: int) -> list[Any]:
    """(stage, index) in the order of a software pipeline over `count` pieces of work.

    Each stage of a piece is issued next to the stage before it of the piece that follows. No more than
    `depth` pieces are under way at once: what the first stage writes may rotate through so many tiles.
    """
    delays = [min(stage, depth - 1) for stage in range(stages)]
    order = []
    for step in range(count + delays[-1]):
        for stage in range(stages):
            index = step - delays[stage]
            if 0 <= index < count:
                order.append((stage, index))
    return order
