"""One stretch of columns of inputs^T @ weight, with the inputs in SBUF and the weight streamed from HBM."""

from typing import Any

from omni_neuron.kernels.limits import BANK_COLUMNS, PARTITIONS, ceil_div
from omni_neuron.kernels.nki import nisa, nl
from omni_neuron.kernels.streamed_product.plan import SPARES, block_size, blocks
from omni_neuron.kernels.tiles import broadcast_row, tiles_of


def buffers(count: int, columns: int, dtype: Any) -> list[Any]:
    """Tiles `[128, columns]` to be used again and again."""
    return tiles_of(count, (PARTITIONS, columns), dtype)


def bias_tiles(bias: Any, first: int, last: int) -> Any:
    """Columns `first` to `last` of a bias `[H]` on all partitions, and tiles for sums that wait for it.

    (`[128, last - first]` in the dtype of the bias, fp32 tiles `[128, 512]`); None where there is no bias.
    """
    if bias is None:
        return None
    return broadcast_row(bias, first, last - first), buffers(SPARES, BANK_COLUMNS, nl.float32)


def bias_part(bias: Any, start: int, width: int) -> Any:
    """Some columns of what `bias_tiles` returned, beside the same tiles for sums."""
    return None if bias is None else (bias[0][:, nl.ds(start, width)], bias[1])


def project_columns(
    out: Any,
    inputs: Any,
    weight: Any,
    bias: Any,
    results: list[Any],
    ring: list[Any],
    turn: int,
    load: bool = True,
) -> None:
    """out `[tokens, width]` in HBM = inputs^T @ weight + bias; as many columns as eight banks of PSUM hold.

    inputs `[128, blocks of K, >= tokens]` in SBUF and weight `[K, width]` in HBM have the contraction K on
    partitions. A piece of 128 rows of weight is used for all tokens as soon as it has come; `turn` is the
    number of pieces that the ring has seen before, and without `load` they are still in it. `bias` is None
    or (`[128, width]`, spare tiles).
    """
    inner, width = weight.shape
    tokens = out.shape[0]
    tiles, across = blocks(tokens), ceil_div(width, BANK_COLUMNS)
    sums = []
    for t in range(tiles):
        banks = []
        for a in range(across):
            shape = (block_size(tokens, t), min(BANK_COLUMNS, width - a * BANK_COLUMNS))
            banks.append(nl.ndarray(shape, nl.float32, buffer=nl.psum))
        sums.append(banks)
    for k in range(blocks(inner)):
        depth = block_size(inner, k)
        piece = ring[(turn + k) % len(ring)]
        if load:
            nisa.dma_copy(piece[0:depth, 0:width], weight[nl.ds(k * PARTITIONS, depth)])
        for t in range(tiles):
            rows = block_size(tokens, t)
            for a in range(across):
                columns = nl.ds(a * BANK_COLUMNS, min(BANK_COLUMNS, width - a * BANK_COLUMNS))
                stationary = inputs[0:depth, k, nl.ds(t * PARTITIONS, rows)]
                nisa.nc_matmul(sums[t][a], stationary, piece[0:depth, columns], accumulate=k > 0)
                if k == blocks(inner) - 1:
                    _settle(results[t][0:rows, columns], sums[t][a], bias, rows, columns, t * across + a)
    for t in range(tiles):
        rows = block_size(tokens, t)
        nisa.dma_copy(out[nl.ds(t * PARTITIONS, rows)], results[t][0:rows, 0:width])


def _settle(result: Any, sums: Any, bias: Any, rows: int, columns: Any, index: int) -> None:
    """A bank of PSUM to SBUF, with the bias; Vector and Scalar take turns, the PE waits for neither."""
    if bias is None:
        engine = nisa.engine.vector if index % 2 == 0 else nisa.engine.scalar
        nisa.tensor_copy(result, sums, engine=engine)
    elif index % 2 == 0:
        nisa.tensor_tensor(result, sums, bias[0][0:rows, columns], nl.add, engine=nisa.engine.vector)
    else:
        spare = bias[1][index // 2 % SPARES][0:rows, 0 : sums.shape[1]]
        nisa.tensor_copy(spare, sums, engine=nisa.engine.scalar)
        nisa.tensor_tensor(result, spare, bias[0][0:rows, columns], nl.add, engine=nisa.engine.gpsimd)
