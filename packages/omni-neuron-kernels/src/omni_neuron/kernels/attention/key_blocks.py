"""Keys and values on their way through SBUF, in the form that both products of attention want.

A block holds up to 2,048 keys. Its tiles of 128 keys are interleaved: with n full tiles, partition p of
tile t is key n p + t, so that each partition reads n rows of values that follow each other in HBM. The
softmax does not mind the order, as long as keys and values agree; the rest of a block is a tile of its own.
"""

from dataclasses import dataclass
from typing import Any

from omni_neuron.kernels.attention.window import KEY_BLOCK
from omni_neuron.kernels.limits import PARTITIONS
from omni_neuron.kernels.nki import nisa, nl

TILE = PARTITIONS  # keys, or queries, that stand on partitions at once


def tile_counts(keys: int, start: int) -> tuple[int, int]:
    """Full tiles in the block that starts at key `start`, and the keys of the tile after them."""
    count = min(KEY_BLOCK, keys - start)
    return count // TILE, count % TILE


@dataclass
class KeyBlock(nl.NKIObject):
    """A block in SBUF: its keys `[D, n]` in order, and (keys `[D, m]`, values with a column of ones
    `[m, D + 1]`, number of the tile in the shard) for each tile.

    The ones make the second product sum the weights beside the values.
    """

    start: int
    keys: Any
    tiles: list[Any]


def load_block(keys: Any, values: Any, start: int) -> Any:
    """The block of keys `[D, S]` and values `[S, D]` in HBM that starts at key `start`."""
    width = keys.shape[0]
    full, rest = tile_counts(keys.shape[1], start)
    count = TILE * full + rest
    key = nl.ndarray((width, count), keys.dtype)
    nisa.dma_copy(key, keys[:, nl.ds(start, count)])
    column = start // TILE
    tiles = []
    if full:
        extended = _extended(values[nl.ds(start, TILE * full)].reshape((TILE, full, width)))
        for t in range(full):
            tiles.append((key[:, t : TILE * full : full], extended[:, t], column + t))
    if rest:
        last = _extended(values[nl.ds(start + TILE * full, rest)].reshape((rest, 1, width)))
        tiles.append((key[:, nl.ds(TILE * full, rest)], last[:, 0], column + full))
    return KeyBlock(start, key, tiles)


def _extended(rows: Any) -> Any:
    partitions, tiles, width = rows.shape
    values = nl.ndarray((partitions, tiles, width), rows.dtype)
    nisa.dma_copy(values, rows)
    extended = nl.ndarray((partitions, tiles, width + 1), rows.dtype)
    nisa.tensor_copy(extended[:, :, 0:width], values, engine=nisa.engine.vector)
    nisa.memset(extended[:, :, width : width + 1], 1.0, engine=nisa.engine.vector)
    return extended
