"""The attention's output projection: a head's block `[D, T]` is the stationary operand as it stands.

Heads and their channels form one contraction, cut into pieces of 128 whatever D is. A weight that fits stays
in SBUF (ten heads at H = 5120 do) and tokens stream past it; a larger one streams past up to 1,024 tokens at
a time. With two cores each takes half of the result's columns, so any number of tokens keeps both busy and no
weight is read by both.
"""

from typing import Any

from omni_neuron.kernels.limits import BANK_COLUMNS, PARTITIONS, ceil_div
from omni_neuron.kernels.nki import nisa, nki, nl
from omni_neuron.kernels.output_projection.plan import RESIDENT_TILES, fits_whole, tiles_per_pass
from omni_neuron.kernels.streamed_product.plan import (
    banks_across,
    block_size,
    blocks,
    passes,
    ring_slots,
)
from omni_neuron.kernels.streamed_product.product import (
    bias_part,
    bias_tiles,
    buffers,
    project_columns,
)
from omni_neuron.kernels.tiles import itemsize, share, tiles_of


@nki.jit
def output_projection_kernel(attention: Any, weight: Any, bias: Any, fp32_result: bool) -> Any:
    """attention `[heads, D, T]`, weight `[heads * D, H]`, bias `[H]` or None: their product, `[T, H]`.

    The result has the dtype of attention, or fp32 where `fp32_result` says so.
    """
    tokens = attention.shape[2]
    inner, width = weight.shape
    each = itemsize(attention.dtype)
    dtype = nl.float32 if fp32_result else attention.dtype
    out = nl.ndarray((tokens, width), dtype, buffer=nl.shared_hbm)
    first, last = share(blocks(width))
    first, last = first * PARTITIONS, min(last * PARTITIONS, width)
    if first < last:
        source = attention.flatten_dims(0, 1)
        whole = fits_whole(inner, last - first, RESIDENT_TILES, each)
        most = RESIDENT_TILES if whole else tiles_per_pass(inner, last - first, each)
        groups = passes(0, tokens, most)
        size = groups[0][1]
        step = BANK_COLUMNS * banks_across(blocks(size), each)
        pieces = blocks(inner) * ceil_div(last - first, step)
        stays = tiles_of(min(2, len(groups)), (PARTITIONS, blocks(inner), size), attention.dtype)
        ring = buffers(pieces if whole else ring_slots(step, each), step, weight.dtype)
        results = buffers(blocks(size), step, dtype)
        added = bias_tiles(bias, first, last)
        turn = 0
        for g in range(len(groups)):
            start, count = groups[g]
            inputs = stays[g % 2]
            for k in range(blocks(inner)):
                depth = block_size(inner, k)
                rows = source[nl.ds(k * PARTITIONS, depth), nl.ds(start, count)]
                nisa.dma_copy(inputs[0:depth, k, 0:count], rows)
            for column in range(first, last, step):
                wide = min(step, last - column)
                columns = nl.ds(column, wide)
                project_columns(
                    out[nl.ds(start, count), columns],
                    inputs,
                    weight[:, columns],
                    bias_part(added, column - first, wide),
                    results,
                    ring,
                    turn,
                    load=g == 0 or not whole,
                )
                turn += blocks(inner)
    return out
