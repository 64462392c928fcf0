"""Cosines and sines of a block of tokens, with the dimensions of a head on partitions."""

from typing import Any

from omni_neuron.kernels.limits import PARTITIONS
from omni_neuron.kernels.nki import nisa, nl
from omni_neuron.kernels.qkv.setting import token_tiles


def load_angles(setting: Any, block: int, cos: Any, sin: Any) -> Any:
    """Cosines and sines of a block as in HBM, in tiles of at most 128 tokens; None for no rotation."""
    if cos is None:
        return None
    first, tokens = setting.blocks[block]
    loaded = []
    for angles in (cos, sin):
        tiles = []
        for start, rows in token_tiles(tokens):
            tile = nl.ndarray((rows, angles.shape[1]), nl.float32)
            nisa.dma_copy(tile, angles[nl.ds(first + start, rows)])
            tiles.append(tile)
        loaded.append(tiles)
    return loaded


def rotation_tables(angles: Any) -> Any:
    """(cos, signed sin) `[128, tokens]` fp32 of what `load_angles` loaded.

    Each half of a head has its copy. That of the sine has the sign that its half has as an input: the first
    half adds to the second, and the second is taken from the first.
    """
    if angles is None:
        return None
    return _turned(angles[0], 1.0), _turned(angles[1], -1.0)


def _turned(tiles: list[Any], sign: float) -> Any:
    half = tiles[0].shape[1]
    tokens = PARTITIONS * (len(tiles) - 1) + tiles[-1].shape[0]
    turned = nl.ndarray((half, tokens), nl.float32, buffer=nl.psum)
    for t in range(len(tiles)):
        rows = tiles[t].shape[0]
        nisa.nc_transpose(turned[:, nl.ds(t * PARTITIONS, rows)], tiles[t], engine=nisa.engine.tensor)
    table = nl.ndarray((PARTITIONS, tokens), nl.float32)
    for segment in range(PARTITIONS // half):
        scale = sign if segment % 2 == 1 else 1.0
        nisa.activation(table[nl.ds(segment * half, half)], nl.copy, turned, scale=scale)
    return table
