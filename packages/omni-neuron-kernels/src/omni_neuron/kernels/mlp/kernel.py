"""The MLP of a transformer block: up to 1,024 tokens stay in SBUF, both weights stream past them.

x is transposed on the PE, in all but the first pass between the columns of the pass before: 128 columns for
128 x 128 values are 2 % of its time at I = 3456. A DMA transpose would leave the PE alone, but the PE would
wait for it in the first pass, it takes 2-byte types only, and it does not run beside a collective.

The weights of the first product are the stationary operand, so the inner activation comes out as the second
product needs it: inner channels on partitions, where its bias is one number each. With two cores each takes
half of the tiles of 128 tokens.
"""

from typing import Any

from omni_neuron.kernels.limits import BANK_BYTES, BANK_COLUMNS, PARTITIONS, ceil_div
from omni_neuron.kernels.mlp.plan import ROWS, blocks_across, tiles_per_pass
from omni_neuron.kernels.nki import nisa, nki, nl
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
from omni_neuron.kernels.tiles import itemsize, share


@nki.jit
def mlp_kernel(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, fp32_result: bool) -> Any:
    """gelu(x w1 + b1) w2 + b2, `[T, H]`, of x `[T, H]`, w1 `[H, I]`, w2 `[I, H]`.

    b1 `[I]` and b2 `[H]` may be None. The result has the dtype of x, or fp32 where `fp32_result` says so; the
    inner activation has that of x.
    """
    tokens, hidden = x.shape
    inner = w1.shape[1]
    each = itemsize(x.dtype)
    dtype = nl.float32 if fp32_result else x.dtype
    out = nl.ndarray((tokens, hidden), dtype, buffer=nl.shared_hbm)
    first, last = share(blocks(tokens))
    first, last = first * PARTITIONS, min(last * PARTITIONS, tokens)
    if first < last:
        groups = passes(first, last, tiles_per_pass(hidden, inner, each))
        size = groups[0][1]
        step = BANK_COLUMNS * banks_across(blocks(size), each)
        across = blocks_across(size, each)
        rows = buffers(ROWS, hidden, x.dtype)
        turned = nl.ndarray((PARTITIONS, blocks(hidden), size), x.dtype)
        active = nl.ndarray((PARTITIONS, blocks(inner), size), x.dtype)
        inner_ring = buffers(ring_slots(across * PARTITIONS, each), across * PARTITIONS, w1.dtype)
        ring = buffers(ring_slots(step, each), step, w2.dtype)
        results = buffers(blocks(size), step, dtype)
        for t in range(blocks(size)):
            _transpose(turned, x, groups[0], t, rows)
        inner_bias = _channel_bias(b1)
        bias = bias_tiles(b2, 0, hidden)
        seen, turn = 0, 0
        for g in range(len(groups)):
            start, count = groups[g]
            for block in range(0, blocks(inner), across):
                channels = nl.ds(block * PARTITIONS, min(across * PARTITIONS, inner - block * PARTITIONS))
                _activate(active, turned, w1[:, channels], inner_bias, block, count, inner_ring, seen)
                seen += blocks(hidden)
            for s, column in enumerate(range(0, hidden, step)):
                wide = min(step, hidden - column)
                columns = nl.ds(column, wide)
                part = bias_part(bias, column, wide)
                place = out[nl.ds(start, count), columns]
                project_columns(place, active, w2[:, columns], part, results, ring, turn)
                turn += blocks(inner)
                if g + 1 < len(groups) and s < blocks(groups[g + 1][1]):
                    _transpose(turned, x, groups[g + 1], s, rows)
            if g + 1 < len(groups):
                for t in range(ceil_div(hidden, step), blocks(groups[g + 1][1])):
                    _transpose(turned, x, groups[g + 1], t, rows)
    return out


def _transpose(turned: Any, x: Any, group: tuple[int, int], tile: int, rows: list[Any]) -> None:
    """A tile of 128 tokens of a pass into turned `[128, blocks of H, tokens]`, a bank of blocks at a time."""
    start, count = group
    hidden = x.shape[1]
    tall = block_size(count, tile)
    row = rows[tile % ROWS]
    nisa.dma_copy(row[0:tall], x[nl.ds(start + tile * PARTITIONS, tall)])
    most = BANK_BYTES // (PARTITIONS * itemsize(x.dtype))
    tokens = nl.ds(tile * PARTITIONS, tall)
    full = hidden // PARTITIONS
    starts = [(k, min(most, full - k), PARTITIONS) for k in range(0, full, most)]
    if full < blocks(hidden):
        starts += [(full, 1, hidden - full * PARTITIONS)]
    for i in range(len(starts)):
        k, number, depth = starts[i]
        bank = nl.ndarray((depth, number, PARTITIONS), x.dtype, buffer=nl.psum)
        for j in range(number):
            columns = nl.ds((k + j) * PARTITIONS, depth)
            nisa.nc_transpose(bank[:, j, 0:tall], row[0:tall, columns], engine=nisa.engine.tensor)
        engine = nisa.engine.vector if i % 2 == 0 else nisa.engine.scalar
        nisa.tensor_copy(turned[0:depth, nl.ds(k, number), tokens], bank[:, :, 0:tall], engine=engine)


def _channel_bias(bias: Any) -> Any:
    """A bias `[I]` with its channels on partitions: `[128, blocks of I]`."""
    if bias is None:
        return None
    width = bias.shape[0]
    tile = nl.ndarray((PARTITIONS, blocks(width)), bias.dtype)
    full = width // PARTITIONS
    if full > 0:
        nisa.dma_copy(tile[:, 0:full], bias.ap([[1, PARTITIONS], [PARTITIONS, full]]))
    if full < blocks(width):
        rest = width - full * PARTITIONS
        nisa.dma_copy(tile[0:rest, full : full + 1], bias.ap([[1, rest], [1, 1]], offset=full * PARTITIONS))
    return tile


def _activate(
    active: Any, turned: Any, weight: Any, bias: Any, block: int, tokens: int, ring: list[Any], turn: int
) -> None:
    """active[:, block ...] = gelu(weight^T @ turned + bias), for as many channels as PSUM holds.

    weight `[H, channels]` in HBM from inner channel 128 * block on; `turn` counts the pieces in the ring.
    """
    hidden, channels = weight.shape
    stretches = [(t, min(BANK_COLUMNS, tokens - t)) for t in range(0, tokens, BANK_COLUMNS)]
    sums = []
    for c in range(blocks(channels)):
        banks = []
        for _, wide in stretches:
            banks.append(nl.ndarray((block_size(channels, c), wide), nl.float32, buffer=nl.psum))
        sums.append(banks)
    for k in range(blocks(hidden)):
        depth = block_size(hidden, k)
        piece = ring[(turn + k) % len(ring)]
        nisa.dma_copy(piece[0:depth, 0:channels], weight[nl.ds(k * PARTITIONS, depth)])
        for c in range(blocks(channels)):
            lanes = block_size(channels, c)
            stationary = piece[0:depth, nl.ds(c * PARTITIONS, lanes)]
            for s in range(len(stretches)):
                start, wide = stretches[s]
                moving = turned[0:depth, k, nl.ds(start, wide)]
                nisa.nc_matmul(sums[c][s], stationary, moving, accumulate=k > 0)
                if k == blocks(hidden) - 1:
                    place = active[0:lanes, block + c, nl.ds(start, wide)]
                    added = None if bias is None else bias[0:lanes, block + c : block + c + 1]
                    nisa.activation(place, nl.gelu_apprx_tanh, sums[c][s], bias=added)
