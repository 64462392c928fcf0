"""The sum of a residual, its layer norm and the modulation (adaLN) in one pass over the tokens.

Tokens stand on partitions and channels on the free axis, so a row's statistics never leave its partition.
A tile goes through four stages, each issued next to the earlier ones of the tiles that follow:

    load     DMA               x, and the update of the residual
    sum      Vector, GpSimd    t = x + gate * update, whose product the two engines share; t goes back
    norm     Scalar, Vector    mean, then the mean square about it; (t - mean) * gain, then * 1 / deviation
    shift    GpSimd            + shift; the result goes back

Without an update the statistics are taken in the second stage, by the Scalar and the Vector engine in turn.
"""

from typing import Any

from omni_neuron.kernels.limits import ceil_div
from omni_neuron.kernels.nki import nisa, nki, nl
from omni_neuron.kernels.tiles import (
    RESERVE,
    itemsize,
    own_rows,
    rotation,
    row_of_ones,
    spread_row,
    staggered,
    turn,
)

LOAD, SUM, NORM, SHIFT = 0, 1, 2, 3
VECTOR_SHARE = 0.6  # of the columns of gate * update; the GpSimd engine also adds the shift
STATISTICS_COLUMNS = 512  # bn_stats takes no more


@nki.jit
def adaln_kernel(
    x: Any, update: Any, gate: Any, scale: Any, shift: Any, eps: float, unit_offset: bool
) -> Any:
    """x and update `[B, T, H]` of one dtype; gate, scale and shift `[B, H]` in fp32; no update or gate: None.

    t = x + gate * update, or x + update without a gate, or x without an update.
    out = (t - mean) / sqrt(variance + eps) * (scale + 1 if unit_offset else scale) + shift.
    Returns out, or (t, out) where there is an update.
    """
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    total: Any = None if update is None else nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for entry in range(x.shape[0]):
        vectors = (scale[entry], shift[entry], None if gate is None else gate[entry])
        second = None if update is None else (update[entry], total[entry])
        _entry(x[entry], second, vectors, eps, unit_offset, out[entry])
    return out if update is None else (total, out)


def _entry(x: Any, second: Any, vectors: Any, eps: float, unit_offset: bool, out: Any) -> None:
    """One entry of the batch: the tiles of this core, in a software pipeline."""
    width, dtype = x.shape[1], x.dtype
    depth = _depth(width, itemsize(dtype))
    tiles = _tiles(width, dtype, depth)
    work = own_rows(x.shape[0])
    ones = row_of_ones()
    gain: Any = None
    shift: Any = None
    gate: Any = None
    for stage, index in staggered(len(work), 4, depth):
        start, rows = work[index]
        own = nl.ds(start, rows)
        current = []
        for rotating in tiles:
            current.append(turn(rotating, index, rows))
        t, change, result, wide, moments = current
        if stage == LOAD:
            if index == 0 and vectors[2] is not None:
                gate = spread_row(vectors[2], ones)
            nisa.dma_copy(t, x[own])
            if second is not None:
                nisa.dma_copy(change, second[0][own])
        elif stage == SUM:
            if second is not None:
                _add(t, change, gate, wide)
                nisa.dma_copy(second[1][own], t)
            elif index % 2 == 0:
                _moments_on_scalar(moments, t, change)
            else:
                _moments_on_vector(moments, t)
            if index == 0:
                gain = spread_row(vectors[0], ones, 1.0 if unit_offset else 0.0)
        elif stage == NORM:
            if second is not None:
                _moments_on_scalar(moments, t, result)
            _normalise(wide, t, moments, gain, eps)
            if index == 0:
                shift = spread_row(vectors[1], ones)
        else:
            nisa.tensor_tensor(result, wide, shift[0:rows], nl.add, engine=nisa.engine.gpsimd)
            nisa.dma_copy(out[own], result)


def _depth(width: int, size: int) -> int:
    """How many tiles may be under way, so that everything fits."""
    depth = 4
    while depth > 1 and width * (12 + _column_bytes(size, depth)) > nl.tile_size.sbuf_fmax_bytes - RESERVE:
        depth -= 1
    return depth


def _counts(depth: int) -> tuple[int, int, int, int]:
    """How many tiles of t, update, result and fp32 work are in use at once: see `staggered`."""
    delays = [min(stage, depth - 1) for stage in range(4)]
    return (
        delays[NORM] - delays[LOAD] + 1,
        delays[SUM] - delays[LOAD] + 1,
        delays[SHIFT] - delays[NORM] + 1,
        delays[SHIFT] - delays[SUM] + 1,
    )


def _column_bytes(size: int, depth: int) -> int:
    t, change, result, wide = _counts(depth)
    return (t + change + result) * size + wide * 4


def _tiles(width: int, dtype: Any, depth: int) -> list[Any]:
    t, change, result, wide = _counts(depth)
    return [
        rotation(width, dtype, t),
        rotation(width, dtype, change),
        rotation(width, dtype, result),
        rotation(width, nl.float32, wide),
        rotation(2, nl.float32, t),
    ]


def _add(t: Any, change: Any, gate: Any, wide: Any) -> None:
    """t + gate * change in fp32, rounded once, in place of t."""
    rows, width = t.shape
    if gate is None:
        nisa.tensor_tensor(t, t, change, nl.add, engine=nisa.engine.vector)
        return
    cut = min(int(VECTOR_SHARE * width) + 1, width)
    for first, last, engine in ((0, cut, nisa.engine.vector), (cut, width, nisa.engine.gpsimd)):
        if first < last:
            part = nl.ds(first, last - first)
            nisa.tensor_tensor(wide[:, part], change[:, part], gate[0:rows, part], nl.multiply, engine=engine)
    nisa.tensor_tensor(t, wide, t, nl.add, engine=nisa.engine.vector)


def _moments_on_scalar(moments: Any, t: Any, spare: Any) -> None:
    """Mean, then the mean square about it; what `spare` holds is lost."""
    rows, width = t.shape
    mean, variance = moments[:, 0:1], moments[:, 1:2]
    nisa.activation_reduce(spare, nl.copy, t, nl.add, mean)
    minus = nl.ndarray((rows, 1), nl.float32)
    nisa.activation(minus, nl.copy, mean, scale=-1.0 / width)
    nisa.activation(mean, nl.copy, mean, scale=1.0 / width)
    nisa.activation_reduce(spare, nl.square, t, nl.add, variance, bias=minus)
    nisa.activation(variance, nl.copy, variance, scale=1.0 / width)


def _moments_on_vector(moments: Any, t: Any) -> None:
    """Mean and mean square about it, from the moments of pieces, each about its own mean."""
    rows, width = t.shape
    pieces = ceil_div(width, STATISTICS_COLUMNS)
    # Pieces of one size: a piece of a single column has no moments of its odd columns.
    columns = ceil_div(width, pieces)
    statistics = nl.ndarray((rows, 6 * pieces), nl.float32)
    for piece in range(pieces):
        part = nl.ds(piece * columns, min(columns, width - piece * columns))
        nisa.bn_stats(statistics[:, nl.ds(6 * piece, 6)], t[:, part])
    nisa.bn_aggr(moments, statistics)


def _normalise(wide: Any, t: Any, moments: Any, gain: Any, eps: float) -> None:
    """wide = (t - mean) * gain / sqrt(variance + eps)."""
    rows = t.shape[0]
    nisa.scalar_tensor_tensor(wide, t, nl.subtract, moments[:, 0:1], nl.multiply, gain[0:rows])
    inverse = nl.ndarray((rows, 1), nl.float32)
    nisa.activation(inverse, nl.rsqrt, moments[:, 1:2], bias=eps)
    nisa.activation(wide, nl.copy, wide, scale=inverse)
