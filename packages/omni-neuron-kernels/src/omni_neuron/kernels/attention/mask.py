"""Keys that do not count: those from a length on."""

from typing import Any

from omni_neuron.kernels.attention.key_blocks import TILE, tile_counts
from omni_neuron.kernels.attention.window import KEY_BLOCK
from omni_neuron.kernels.nki import nisa, nl

MASKED = -1.0e38  # in place of what belongs to keys that do not count: below any score, and its exponential 0


def valid_keys(lengths: Any, index: Any) -> Any:
    """Element `index` (int or register) of int32 lengths in HBM on every partition, fp32 `[128, 1]`."""
    whole = nl.ndarray((TILE, 1), nl.int32)
    everywhere = [[0, TILE], [1, 1]]
    if isinstance(index, int):
        nisa.dma_copy(whole, lengths.ap(everywhere, offset=index))
    else:
        nisa.dma_copy(whole, lengths.ap(everywhere, scalar_offset=index))
    length = nl.ndarray((TILE, 1), nl.float32)
    nisa.tensor_copy(length, whole, engine=nisa.engine.vector)
    return length


def key_positions(keys: int) -> Any:
    """Which key stands in which partition of which tile, fp32 `[128, tiles]`."""
    columns = 0
    for start in range(0, keys, KEY_BLOCK):
        full, rest = tile_counts(keys, start)
        columns += full + (1 if rest else 0)
    positions = nl.ndarray((TILE, columns), nl.float32)
    column = 0
    for start in range(0, keys, KEY_BLOCK):
        full, rest = tile_counts(keys, start)
        if full:
            nisa.iota(positions[:, nl.ds(column, full)], [[1, full]], offset=start, channel_multiplier=full)
        if rest:
            after = positions[:, nl.ds(column + full, 1)]
            nisa.iota(after, [[1, 1]], offset=start + TILE * full, channel_multiplier=1)
        column += full + (1 if rest else 0)
    return positions


def mask_after(positions: Any, length: Any, scale: float) -> Any:
    """By what to multiply scores, and what to add to them, `[128, 2, tiles]`: (scale, 0) for keys before
    `length` `[128, 1]`, (0, MASKED) from there on, whatever stands there."""
    partitions, tiles = positions.shape
    mask = nl.ndarray((partitions, 2, tiles), nl.float32)
    nisa.tensor_scalar(mask[:, 0], positions, nl.less, length, op1=nl.multiply, operand1=scale)
    nisa.tensor_scalar(mask[:, 1], positions, nl.greater_equal, length, op1=nl.multiply, operand1=MASKED)
    return mask


def masked_maximum(dst: Any, data: Any, first_key: int, length: Any) -> None:
    """dst `[P, 1]` = the row maximum over the keys before `length` `[128, 1]`; data's columns are keys."""
    if length is None:
        nisa.tensor_reduce(dst, nl.maximum, data, 1)
        return
    rows = data.shape[0]
    begin = nl.ndarray((rows, 1), nl.float32)
    nisa.memset(begin, 0.0, engine=nisa.engine.vector)
    kept = nl.ndarray(data.shape, nl.float32)
    nisa.range_select(
        kept, data, nl.greater_equal, nl.less, begin, length[0:rows], reduce_res=dst, range_start=first_key
    )
