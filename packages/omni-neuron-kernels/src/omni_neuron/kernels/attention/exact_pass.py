"""Queries against a shard of keys with a shift for each row, its running maximum: for any scores.

The scores of a block of keys are computed twice: with queries on partitions for the maximum, then as in the
other pass. Sums so far are multiplied by what the shift has grown.
"""

from typing import Any

from omni_neuron.kernels.attention.banks import COLUMNS, SUMS, in_bank
from omni_neuron.kernels.attention.head import block_of, load_queries, load_shard, new_sums, query_rows
from omni_neuron.kernels.attention.key_blocks import TILE, masked_maximum
from omni_neuron.kernels.attention.octaves import NOTHING_SEEN, OCTAVE, columns_to_rows, whole_octaves
from omni_neuron.kernels.attention.products import gather, pairs, weights_of_rows
from omni_neuron.kernels.attention.results import normalise, turn_out
from omni_neuron.kernels.attention.state import keep_state, open_state
from omni_neuron.kernels.attention.window import KEY_BLOCK, QUERY_BLOCK
from omni_neuron.kernels.nki import nisa, nl


def exact_pass(head: Any, starts: list[int]) -> None:
    """One head's blocks of queries against the shard."""
    resident = load_shard(head)
    width = head.query.shape[0]
    for start in starts:
        query = load_queries(head, start)
        rows = query_rows(head.query.shape[1], start)
        state = open_state(head.state, start // QUERY_BLOCK, width, head.first)
        totals = [state[0 : rows[i][1], i] for i in range(len(rows))]
        if head.first:
            for total in totals:
                nisa.memset(total, 0.0, engine=nisa.vector_engine)
                nisa.memset(total[:, width + 1 : width + 2], NOTHING_SEEN, engine=nisa.vector_engine)
        for index in range(-(-head.keys.shape[1] // KEY_BLOCK)):
            block = block_of(head, resident, index)
            shift = nl.ndarray((TILE, query.shape[1]), nl.float32)
            corrections = []
            for (offset, size), total in zip(rows, totals):  # noqa: B905
                octaves = row_octaves(head, query[:, nl.ds(offset, size)], block)
                before = total[:, width + 1 : width + 2]
                nisa.tensor_tensor(octaves, octaves, before, nl.maximum)
                correction = nl.ndarray((size, 1), nl.float32)
                nisa.tensor_tensor(correction, before, octaves, nl.subtract)
                nisa.activation(correction, nl.exp, correction, scale=OCTAVE)
                corrections.append(correction)
                nisa.tensor_copy(before, octaves, engine=nisa.vector_engine)
                columns_to_rows(shift[:, nl.ds(offset, size)], octaves, offset // TILE)
            sums = new_sums(head, start)
            found = pairs(block.tiles)
            weights = weights_of_rows(head, found[0], query, shift, 0)
            for n in range(len(found)):
                following = None
                if n + 1 < len(found):
                    following = weights_of_rows(head, found[n + 1], query, shift, n + 1)
                gather(sums, found[n], weights, n == 0)
                weights = following
            for i in range(len(sums)):
                part = totals[i][:, 0 : width + 1]
                nisa.scalar_tensor_tensor(part, part, nl.multiply, corrections[i], nl.add, sums[i])
        if head.last:
            turn_out(head, start, [normalise(t[:, 0 : width + 1], head.values.dtype) for t in totals], 0)
        else:
            keep_state(head.state, start // QUERY_BLOCK, state)


def row_octaves(head: Any, query: Any, block: Any) -> Any:
    """The largest score of each query in a block of keys, as whole octaves `[queries, 1]`."""
    rows, keys = query.shape[1], block.keys.shape[1]
    tops = nl.ndarray((rows, -(-keys // COLUMNS)), nl.float32)
    for start in range(0, keys, COLUMNS):
        count = min(COLUMNS, keys - start)
        scores = in_bank((rows, count), nl.float32, start // COLUMNS % SUMS)
        nisa.nc_matmul(scores, query, block.keys[:, nl.ds(start, count)], accumulate=False)
        top = tops[:, nl.ds(start // COLUMNS, 1)]
        masked_maximum(top, scores, block.start + start, head.length)
    top = nl.ndarray((rows, 1), nl.float32)
    nisa.tensor_reduce(top, nl.maximum, tops, 1)
    return whole_octaves(top, head.scale / OCTAVE)
