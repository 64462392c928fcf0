"""Queries against a shard of keys with a shift for each row, its running maximum: for any scores.

A block of queries meets a block of keys in two steps. First its scores with queries on partitions, for the
largest of each row; then, as in the other pass, scores with keys on partitions, weights and their sums. Sums
so far are multiplied by what the shift has grown. The first step of the next two blocks goes on between the
products of these, so that the tensor engine does not wait for the maxima.
"""

from dataclasses import dataclass
from typing import Any

from omni_neuron.kernels.attention.banks import COLUMNS, in_bank
from omni_neuron.kernels.attention.head import block_of, load_queries, load_shard, new_sums, query_rows
from omni_neuron.kernels.attention.mask import masked_maximum
from omni_neuron.kernels.attention.octaves import (
    NOTHING_SEEN,
    OCTAVE,
    SHIFT_ROWS,
    shift_rows,
    whole_octaves,
)
from omni_neuron.kernels.attention.products import add_weighted_values, pairs, weights_of_rows
from omni_neuron.kernels.attention.results import normalise, store_transposed
from omni_neuron.kernels.attention.state import keep_state, open_state
from omni_neuron.kernels.attention.window import KEY_BLOCK, QUERY_BLOCK
from omni_neuron.kernels.limits import ceil_div
from omni_neuron.kernels.nki import nisa, nl

SEARCH = 2  # first of the two PSUM banks for the scores of the first step


@dataclass
class Meeting(nl.NKIObject):
    """A block of queries and a block of keys.

    state `[128, 4, D + 2]` of the queries; tops: the largest scores, `[rows, chunks of keys]` for each tile
    of queries; pieces: (tile, chunk) that are still to be searched.
    """

    start: int
    query: Any
    rows: list[Any]
    state: Any
    block: Any
    tops: list[Any]
    pieces: list[Any]
    last: bool


def exact_pass(head: Any, starts: list[int]) -> None:
    """One head's blocks of queries against the shard."""
    resident = load_shard(head)
    blocks = ceil_div(head.keys.shape[1], KEY_BLOCK)
    coming = next_meeting(head, None, starts[0], block_of(head, resident, 0), blocks == 1)
    find_maxima(head, coming, len(coming.pieces))
    for n in range(len(starts) * blocks):
        here, coming = coming, None
        shifts, corrections = update_maxima(head, here)
        if n + 1 < len(starts) * blocks:
            start, index = starts[(n + 1) // blocks], (n + 1) % blocks
            coming = next_meeting(
                head,
                None if index == 0 else here,
                start,
                block_of(head, resident, index),
                index == blocks - 1,
            )
        sums = new_sums(head, here.start)
        found = pairs(here.block.tiles)
        weights = weights_of_rows(head, found[0], here.query, shifts)
        for i in range(len(found)):
            if coming is not None:
                find_maxima(head, coming, ceil_div(len(coming.pieces), len(found) - i))
            add_weighted_values(sums, found[i], weights, i == 0)
            if i + 1 < len(found):
                weights = weights_of_rows(head, found[i + 1], here.query, shifts)
        merge_meeting(head, here, sums, corrections)


def next_meeting(head: Any, before: Any, start: int, block: Any, last: bool) -> Any:
    """The next meeting: of the same queries where there is one before, else of new ones."""
    width = head.query.shape[0]
    rows = query_rows(head.query.shape[1], start)
    if before is not None:
        query, state = before.query, before.state
    else:
        query = load_queries(head, start)
        state = open_state(head.state, start // QUERY_BLOCK, width, head.first)
        if head.first:
            for i in range(len(rows)):
                total = state[0 : rows[i][1], i]
                nisa.memset(total, 0.0, engine=nisa.engine.vector)
                nisa.memset(total[:, width + 1 : width + 2], NOTHING_SEEN, engine=nisa.engine.vector)
    chunks = ceil_div(block.keys.shape[1], COLUMNS)
    tops = [nl.ndarray((size, chunks), nl.float32) for _, size in rows]
    pieces = [(i, chunk) for i in range(len(rows)) for chunk in range(chunks)]
    return Meeting(start, query, rows, state, block, tops, pieces, last)


def find_maxima(head: Any, meeting: Any, count: int) -> None:
    """The largest scores of the next pieces."""
    for i, chunk in meeting.pieces[0:count]:
        offset, size = meeting.rows[i]
        first = chunk * COLUMNS
        columns = min(COLUMNS, meeting.block.keys.shape[1] - first)
        scores = in_bank((size, columns), nl.float32, SEARCH + chunk % 2)
        keys = meeting.block.keys[:, nl.ds(first, columns)]
        nisa.nc_matmul(scores, meeting.query[:, nl.ds(offset, size)], keys, accumulate=False)
        top = meeting.tops[i][:, nl.ds(chunk, 1)]
        masked_maximum(top, scores, meeting.block.start + first, head.length)
    meeting.pieces = meeting.pieces[count:]


def update_maxima(head: Any, meeting: Any) -> tuple[Any, list[Any]]:
    """Let the shifts grow to the maxima of this meeting.

    Returns the rows of shifts `[3, queries]`, and by what to multiply the sums so far, `[rows, 1]` for each
    tile of queries.
    """
    width = head.query.shape[0]
    shifts = nl.ndarray((SHIFT_ROWS, meeting.query.shape[1]), nl.bfloat16)
    corrections = []
    for i in range(len(meeting.rows)):
        offset, size = meeting.rows[i]
        top = nl.ndarray((size, 1), nl.float32)
        nisa.tensor_reduce(top, nl.maximum, meeting.tops[i], 1)
        octaves = whole_octaves(top, head.scale / OCTAVE)
        before = meeting.state[0:size, i, width + 1 : width + 2]
        nisa.tensor_tensor(octaves, octaves, before, nl.maximum)
        correction = nl.ndarray((size, 1), nl.float32)
        nisa.tensor_tensor(correction, before, octaves, nl.subtract)
        nisa.activation(correction, nl.exp, correction, scale=OCTAVE)
        corrections.append(correction)
        nisa.tensor_copy(before, octaves, engine=nisa.engine.vector)
        shift_rows(shifts[:, nl.ds(offset, size)], octaves, head.scale, SEARCH + i % 2)
    return shifts, corrections


def merge_meeting(head: Any, meeting: Any, sums: list[Any], corrections: list[Any]) -> None:
    """Add the sums of a meeting to the state, and give out the result where it was the last."""
    width = head.query.shape[0]
    results = []
    for i in range(len(sums)):
        total = meeting.state[0 : meeting.rows[i][1], i, 0 : width + 1]
        nisa.scalar_tensor_tensor(total, total, nl.multiply, corrections[i], nl.add, sums[i])
        if meeting.last and head.last:
            results.append(normalise(total, head.values.dtype))
    if meeting.last and head.last:
        store_transposed(head, meeting.start, results, 0)
    elif meeting.last:
        keep_state(head.state, meeting.start // QUERY_BLOCK, meeting.state)
