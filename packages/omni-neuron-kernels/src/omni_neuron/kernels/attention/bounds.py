"""What is known of a row's largest score before any score is computed, and which path that allows.

The mathematics is in `window`. All heads go through each step together, so that no engine waits for one
head's chain of small steps.
"""

from typing import Any

from omni_neuron.kernels.attention.banks import SUMS, in_bank
from omni_neuron.kernels.attention.key_blocks import TILE
from omni_neuron.kernels.attention.mask import MASKED
from omni_neuron.kernels.attention.octaves import OCTAVE, on_all_partitions, whole_octaves
from omni_neuron.kernels.attention.statistics import NORM_MARGIN, SMALL, query_groups
from omni_neuron.kernels.attention.window import DOUBT, QUERY_BLOCK, above, below, width
from omni_neuron.kernels.limits import ceil_div
from omni_neuron.kernels.nki import nisa, nl


def choose_paths(
    queries: list[Any], norms: Any, means: list[Any], extent: list[Any], scale: float, keys: int
) -> list[Any]:
    """Shifts of the blocks of queries of some heads, and which path is safe for them.

    Args:
        queries: `[D, Sq]` in HBM, for each head.
        norms: of the queries, as `query_norms` gives them.
        means: tiles `[D, shards, blocks]` of the blocks of keys of all shards, for each head.
        extent: tiles `[1, 2, shards x blocks]` of their radii and absences, for each head.
        scale: of the scores, above 0.
        keys: of all shards together.

    Returns:
        tiles: minus the shift of each block of queries on every partition, fp32 `[128, heads, query
        blocks]`; and int32 flags `[1, 1 + 2 heads]`: whether every block of every head lies in the window;
        else for each head whether its blocks do, and whether they do not.
    """
    if len(queries) == 0:
        return [None, None]
    heads, count, blocks = len(queries), queries[0].shape[1], extent[0].shape[2]
    query_blocks, tiles = ceil_div(count, QUERY_BLOCK), QUERY_BLOCK // TILE
    # upper bounds, and lower ones with their sign turned, so that both are reduced to a maximum
    edges = nl.ndarray((TILE, 2, heads, query_blocks * tiles), nl.float32)
    nisa.memset(edges, MASKED, engine=nisa.engine.vector)
    spreads = _spreads(means, extent)
    before: Any = None
    bank = 0
    for h in range(heads):
        halves = _halves(means[h], queries[h].dtype)
        for first, rows, together in query_groups(count, 2 * blocks):
            products = _products(queries[h], first, rows, together, halves, SUMS + bank % SUMS)
            bank += 1
            if before is not None:
                _bounds_of_rows(before[0], before[1], before[2], before[3])
            own = nl.ds(first // TILE, together)
            before = (edges[0:rows, :, h, own], products, norms[0:rows, h, own], spreads[0:rows, h])
    _bounds_of_rows(before[0], before[1], before[2], before[3])
    widest = nl.ndarray((TILE, 2, heads, query_blocks), nl.float32)
    nisa.tensor_reduce(widest, nl.maximum, edges.reshape((TILE, 2, heads, query_blocks, tiles)), 4)
    edge = nl.ndarray((1, 2, heads, query_blocks), nl.float32)
    nisa.tensor_partition_reduce(edge, nl.maximum, widest)
    flags = _flags(edge, width(keys) / scale)
    # The window reaches from c - below to c + above: its middle meets the middle of the bounds.
    middle = nl.ndarray((1, heads * query_blocks), nl.float32)
    nisa.tensor_tensor(middle, edge[:, 0], edge[:, 1], nl.subtract)
    raised = 0.5 * (below(keys) - above(keys))
    nisa.tensor_scalar(middle, middle, nl.multiply, 0.5 * scale, op1=nl.add, operand1=raised)
    shifts = nl.ndarray((TILE, heads, query_blocks), nl.float32)
    octaves = whole_octaves(middle, 1.0 / OCTAVE)
    on_all_partitions(shifts.reshape((TILE, heads * query_blocks)), octaves, -OCTAVE)
    return [shifts, flags]


def _flags(edge: Any, limit: float) -> Any:
    """The flags of `choose_paths` from the edges `[1, 2, heads, blocks]` of blocks of queries.

    What is not a number lies outside: one of two flags is always set.
    """
    heads = edge.shape[2]
    apart = nl.ndarray((1, heads, edge.shape[3]), nl.float32)
    nisa.tensor_tensor(apart, edge[:, 0], edge[:, 1], nl.add)
    widest = nl.ndarray((1, heads), nl.float32)
    nisa.tensor_reduce(widest, nl.maximum, apart, 2)
    worst = nl.ndarray((1, 1), nl.float32)
    nisa.tensor_reduce(worst, nl.maximum, widest, 1)
    flags = nl.ndarray((1, 1 + 2 * heads), nl.int32)
    every = nl.ndarray((1, 1), nl.float32)
    nisa.tensor_scalar(every, worst, nl.less_equal, limit)
    nisa.tensor_copy(flags[:, 0:1], every, engine=nisa.engine.vector)
    inside = nl.ndarray((1, heads), nl.float32)
    nisa.tensor_scalar(inside, widest, nl.less_equal, limit)
    nisa.tensor_scalar(flags[:, nl.ds(1, heads)], inside, nl.subtract, every)
    nisa.tensor_scalar(flags[:, nl.ds(1 + heads, heads)], inside, nl.multiply, -1.0, op1=nl.add, operand1=1.0)
    return flags


def _spreads(means: list[Any], extent: list[Any]) -> Any:
    """What bounds take from each block of keys, on all partitions: fp32 `[128, heads, 3, blocks]`.

    Above the mean's score by so many |q|, absence, and below it by so many |q|. The first and the last hold
    what rounding may do, the first the radius too.
    """
    heads, blocks = len(means), extent[0].shape[2]
    size = means[0].shape[0]
    spreads = nl.ndarray((TILE, heads, 3, blocks), nl.float32)
    ones = nl.ndarray((size, TILE), nl.bfloat16)
    nisa.memset(ones, 1.0, engine=nisa.engine.vector)
    for h in range(heads):
        squares = nl.ndarray(means[h].shape, nl.bfloat16)
        nisa.tensor_tensor(squares, means[h], means[h], nl.multiply)
        sums = in_bank((TILE, blocks), nl.float32, h % SUMS)
        nisa.nc_matmul(sums, ones, squares.reshape((size, blocks)), accumulate=False)
        nisa.activation(spreads[:, h, 2], nl.sqrt, sums, bias=SMALL, scale=(NORM_MARGIN * DOUBT) ** 2)
    for h in range(heads):
        above_mean, below_mean = spreads[:, h, 0], spreads[:, h, 2]
        known = spreads[:, h, 0:2].reshape((TILE, 2 * blocks))
        on_all_partitions(known, extent[h].reshape((1, 2 * blocks)), 1.0)
        nisa.scalar_tensor_tensor(below_mean, above_mean, nl.multiply, DOUBT, nl.add, below_mean)
        nisa.tensor_tensor(above_mean, above_mean, below_mean, nl.add)
    return spreads


def _halves(means: Any, dtype: Any) -> Any:
    """Means `[D, shards, blocks]` in two halves, `[D, 2, shards, blocks]`, which keep 16 bits of their
    fraction in a product in bfloat16."""
    size, shards, blocks = means.shape
    halves = nl.ndarray((size, 2, shards, blocks), dtype)
    nisa.tensor_copy(halves[:, 0], means, engine=nisa.engine.vector)
    nisa.tensor_tensor(halves[:, 1], means, halves[:, 0], nl.subtract)
    return halves.reshape((size, 2 * shards * blocks))


def _products(query: Any, first: int, rows: int, tiles: int, halves: Any, bank: int) -> Any:
    """Queries times the halves of the means, in PSUM `[rows, tiles, 2 blocks]`."""
    tile = nl.ndarray((query.shape[0], rows * tiles), query.dtype)
    nisa.dma_copy(tile, query[:, nl.ds(first, rows * tiles)])
    dots = in_bank((rows, tiles, halves.shape[1]), nl.float32, bank)
    for t in range(tiles):
        nisa.nc_matmul(dots[:, t], tile[:, nl.ds(t * rows, rows)], halves, accumulate=False)
    return dots


def _bounds_of_rows(edges: Any, dots: Any, norms: Any, spread: Any) -> None:
    """Bounds of every query's largest score, before the scale, into edges `[rows, 2, tiles]`; `spread`
    `[rows, 3, blocks]` as `_spreads` gives it."""
    rows, tiles = norms.shape
    blocks = spread.shape[2]
    level = nl.ndarray((rows, tiles, blocks), nl.float32)
    nisa.tensor_copy(level, dots[:, :, 0:blocks], engine=nisa.engine.vector)
    nisa.tensor_tensor(level, level, dots[:, :, blocks : 2 * blocks], nl.add)
    nisa.tensor_tensor(level, level, spread[:, 1].expand_dim(1).broadcast(1, tiles), nl.add)
    low = _reach(spread[:, 2], norms)
    nisa.tensor_tensor(low, level, low, nl.subtract)
    lower = nl.ndarray((rows, tiles), nl.float32)
    nisa.tensor_reduce(lower, nl.maximum, low, 2)
    nisa.tensor_scalar(edges[:, 1], lower, nl.multiply, -1.0)
    high = _reach(spread[:, 0], norms)
    nisa.tensor_tensor(high, high, level, nl.add)
    nisa.tensor_reduce(edges[:, 0], nl.maximum, high, 2)


def _reach(distances: Any, norms: Any) -> Any:
    """|q| times a distance of each block of keys, `[rows, tiles, blocks]`."""
    rows, tiles = norms.shape
    blocks = distances.shape[1]
    reach = nl.ndarray((rows, tiles, blocks), nl.float32)
    far = distances.expand_dim(1).broadcast(1, tiles)
    nisa.tensor_tensor(reach, far, norms.expand_dim(2).broadcast(2, blocks), nl.multiply)
    return reach
