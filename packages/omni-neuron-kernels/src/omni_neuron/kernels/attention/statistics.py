"""Statistics of keys and queries that bounds of their scores are made of.

Those of keys are taken per block of 2,048 keys; they are small, and ranks exchange them before the first key
travels.
"""

from typing import Any

from omni_neuron.kernels.attention.banks import COLUMNS, SUMS, in_bank
from omni_neuron.kernels.attention.key_blocks import TILE
from omni_neuron.kernels.attention.mask import MASKED, masked_maximum
from omni_neuron.kernels.attention.window import KEY_BLOCK
from omni_neuron.kernels.limits import ceil_div
from omni_neuron.kernels.nki import nisa, nl

# Squares are rounded to bfloat16 before they are summed, by 2^-10 of a norm; the rest, 0.68 %, is for the
# hardware's table of square roots.
NORM_MARGIN = 1.0 + 2.0**-7
# Keeps square roots inside the range of the hardware's table, and makes up for squares that are flushed: a
# part of a distance below 2^-63, while no distance is below 2^-50.
SMALL = 1.0e-30


def key_statistics(keys: list[Any], lengths: list[Any]) -> list[Any]:
    """Means, radii and absences of the blocks of keys of some heads, each `[D, S]` in HBM.

    Returns fp32 tiles: means `[D, heads, blocks]`; and `[1, heads, 2, blocks]` with the largest distance of
    a key from its block's mean, and MASKED where no key of the block counts. `lengths` are tiles `[128, 1]`
    of how many keys count, or None for all.
    """
    size, count = keys[0].shape
    heads, blocks = len(keys), ceil_div(count, KEY_BLOCK)
    means = nl.ndarray((size, heads, blocks), nl.float32)
    extent = nl.ndarray((1, heads, 2, blocks), nl.float32)
    nisa.memset(extent, 0.0, engine=nisa.engine.vector)
    farthest = nl.ndarray((TILE, heads, blocks), nl.float32)
    before: Any = None
    for h in range(heads):
        for b in range(blocks):
            start = b * KEY_BLOCK
            here = min(KEY_BLOCK, count - start)
            key = nl.ndarray((size, here), keys[h].dtype)
            nisa.dma_copy(key, keys[h][:, nl.ds(start, here)])
            mean = means[:, h, nl.ds(b, 1)]
            if lengths[h] is None:
                nisa.tensor_reduce(mean, nl.add, key, 1)
                nisa.tensor_scalar(mean, mean, nl.multiply, 1.0 / here)
            else:
                counted = _count(lengths[h], start, here)
                _masked_mean(mean, key, start, lengths[h], counted)
                absent = extent[:, h, 1, nl.ds(b, 1)]
                nisa.tensor_scalar(absent, counted[0:1], nl.less, 0.5, op1=nl.multiply, operand1=MASKED)
            distance = _squared_distances(key, mean, (h * blocks + b) % SUMS)
            if before is not None:
                _farthest(before[0], before[1], before[2], before[3])
            before = (farthest[:, h, nl.ds(b, 1)], distance, start, lengths[h])
    _farthest(before[0], before[1], before[2], before[3])
    radius = extent[:, :, 0]
    nisa.tensor_partition_reduce(radius, nl.maximum, farthest)
    nisa.tensor_scalar(radius, radius, nl.add, SMALL)
    nisa.activation(radius, nl.sqrt, radius)
    nisa.tensor_scalar(radius, radius, nl.multiply, NORM_MARGIN)
    return [means, extent]


def _count(length: Any, start: int, here: int) -> Any:
    """How many of the keys from `start` on count, `[128, 1]`, between 0 and `here`."""
    counted = nl.ndarray((TILE, 1), nl.float32)
    nisa.tensor_scalar(counted, length, nl.subtract, float(start), op1=nl.maximum, operand1=0.0)
    nisa.tensor_scalar(counted, counted, nl.minimum, float(here))
    return counted


def _masked_mean(mean: Any, key: Any, start: int, length: Any, counted: Any) -> None:
    size, here = key.shape
    position = nl.ndarray((size, here), nl.float32)
    nisa.iota(position, [[1, here]], offset=start, channel_multiplier=0)
    kept = nl.ndarray((size, here), key.dtype)
    nisa.tensor_scalar(kept, position, nl.less, length[0:size])
    nisa.tensor_tensor(kept, kept, key, nl.multiply)
    nisa.tensor_reduce(mean, nl.add, kept, 1)
    inverse = nl.ndarray((size, 1), nl.float32)
    nisa.tensor_scalar(inverse, counted[0:size], nl.maximum, 1.0)
    nisa.reciprocal(inverse, inverse)
    nisa.tensor_scalar(mean, mean, nl.multiply, inverse)


def _squared_distances(key: Any, mean: Any, bank: int) -> Any:
    """|k - mean|^2 of each key of a block in PSUM, `[128, tiles]`: key 128 t + p at [p, t]."""
    size, here = key.shape
    away = nl.ndarray((size, 1), nl.float32)
    nisa.tensor_scalar(away, mean, nl.multiply, -1.0)
    squares = nl.ndarray((size, here), nl.bfloat16)
    nisa.activation(squares, nl.square, key, bias=away)
    ones = nl.ndarray((size, 1), nl.bfloat16)
    nisa.memset(ones, 1.0, engine=nisa.engine.vector)
    tiles = ceil_div(here, TILE)
    distance = in_bank((TILE, tiles), nl.float32, bank)
    if here % TILE:
        nisa.memset(distance, 0.0, engine=nisa.engine.vector)
    for t in range(tiles):
        rows = min(TILE, here - t * TILE)
        own = squares[:, nl.ds(t * TILE, rows)]
        nisa.nc_matmul(distance[0:rows, nl.ds(t, 1)], own, ones, accumulate=False)
    return distance


def _farthest(dst: Any, distance: Any, start: int, length: Any) -> None:
    """dst `[128, 1]`: the largest distance of the keys that count, each partition of its own keys."""
    if length is None:
        nisa.tensor_reduce(dst, nl.maximum, distance, 1)
        return
    # Key 128 t + p counts where t is less than (length - p) / 128. A selection, not a product with zeros:
    # what stands behind the last key may have a square beyond float32.
    columns = nl.ndarray((TILE, 1), nl.float32)
    nisa.iota(columns, [[1, 1]], offset=0, channel_multiplier=1)
    nisa.tensor_tensor(columns, length, columns, nl.subtract)
    nisa.tensor_scalar(columns, columns, nl.multiply, 1.0 / TILE)
    masked_maximum(dst, distance, start // TILE, columns)
    nisa.tensor_scalar(dst, dst, nl.maximum, 0.0)


def query_norms(queries: list[Any]) -> Any:
    """|q| of every query of some heads, a little too large, fp32 `[128, heads, tiles]`: query 128 t + p at
    [p, head, t]."""
    if len(queries) == 0:
        return None
    size, count = queries[0].shape
    norms = nl.ndarray((TILE, len(queries), ceil_div(count, TILE)), nl.float32)
    nisa.memset(norms, 0.0, engine=nisa.engine.vector)
    ones = nl.ndarray((size, 1), nl.bfloat16)
    nisa.memset(ones, 1.0, engine=nisa.engine.vector)
    bank = 0
    for h in range(len(queries)):
        for first, rows, tiles in query_groups(count, 1):
            tile = nl.ndarray((size, rows * tiles), queries[h].dtype)
            nisa.dma_copy(tile, queries[h][:, nl.ds(first, rows * tiles)])
            squares = nl.ndarray((size, rows * tiles), nl.bfloat16)
            nisa.tensor_tensor(squares, tile, tile, nl.multiply)
            sums = in_bank((rows, tiles), nl.float32, bank % SUMS)
            bank += 1
            for t in range(tiles):
                own = squares[:, nl.ds(t * rows, rows)]
                nisa.nc_matmul(sums[:, nl.ds(t, 1)], own, ones, accumulate=False)
            part = norms[0:rows, h, nl.ds(first // TILE, tiles)]
            nisa.activation(part, nl.sqrt, sums, bias=SMALL, scale=NORM_MARGIN * NORM_MARGIN)
    return norms


def query_groups(count: int, columns: int) -> list[Any]:
    """(first query, rows of a tile, tiles): as many tiles as a bank holds, each with so many columns; a last
    one with fewer rows alone."""
    most = COLUMNS // columns
    full, rest = count // TILE, count % TILE
    groups = [(t * TILE, TILE, min(most, full - t)) for t in range(0, full, most)]
    if rest:
        groups.append((full * TILE, rest, 1))
    return groups
