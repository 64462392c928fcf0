"""From sums to results."""

from typing import Any

from omni_neuron.kernels.attention.banks import in_bank
from omni_neuron.kernels.attention.key_blocks import TILE
from omni_neuron.kernels.attention.state import keep_state
from omni_neuron.kernels.attention.window import QUERY_BLOCK
from omni_neuron.kernels.nki import nisa, nl

TINY = 1.0e-36  # below the sum of weights of any row that has a key


def merge_state(done: Any) -> tuple[Any, int, list[Any]]:
    """Join the sums of a block of queries with those of earlier shards, and keep them for the next.

    Returns (head, start, rows): the normalised rows `[queries, D]` after the last shard, else none.
    """
    head, sums, state = done.head, done.sums, done.state
    width = head.query.shape[0]
    rows = []
    for i in range(len(sums)):
        total = sums[i]
        if not (head.first and head.last):
            total = state[0 : sums[i].shape[0], i, 0 : width + 1]
            if head.first:
                nisa.tensor_copy(total, sums[i], engine=nisa.engine.vector)
            else:
                nisa.tensor_tensor(total, total, sums[i], nl.add)
        if head.last:
            rows.append(normalise(total, head.values.dtype))
    if not head.last:
        keep_state(head.state, done.start // QUERY_BLOCK, state)
    return head, done.start, rows


def normalise(total: Any, dtype: Any) -> Any:
    """Sums of values over sums of weights, rounded once. A row without a key gives zeros."""
    rows, width = total.shape[0], total.shape[1] - 1
    inverse = nl.ndarray((rows, 1), nl.float32)
    nisa.tensor_scalar(inverse, total[:, width : width + 1], nl.maximum, TINY)
    nisa.reciprocal(inverse, inverse)
    result = nl.ndarray((rows, width), dtype)
    nisa.tensor_scalar(result, total[:, 0:width], nl.multiply, inverse)
    return result


def store_transposed(head: Any, start: int, results: list[Any], turn: int) -> None:
    """Write rows `[queries, D]` as columns of out, a block at a time."""
    if len(results) == 0:
        return
    width, count = head.query.shape[0], min(QUERY_BLOCK, head.query.shape[1] - start)
    turned = in_bank((width, count), head.values.dtype, 2 * (turn % 2))
    for i in range(len(results)):
        part = turned[:, nl.ds(i * TILE, results[i].shape[0])]
        nisa.nc_transpose(part, results[i], engine=nisa.engine.tensor)
    block = nl.ndarray((width, count), head.values.dtype)
    nisa.tensor_copy(block, turned, engine=nisa.engine.vector)
    nisa.dma_copy(head.out[:, nl.ds(start, count)], block)
