"""One head's queries against one shard of keys: scores, weights, and weighted sums of values.

Scores stand with keys on partitions and queries along the free axis, which is how the second product wants
the weights: nothing is transposed. Instructions are in the order in which a pipeline wants them: the scores
of one pair of tiles go to the tensor engine before the values of the pair before, so that it never waits for
an exponential.
"""

from dataclasses import dataclass
from typing import Any

from omni_neuron.kernels.attention.banks import COLUMNS, SUMS, in_bank
from omni_neuron.kernels.attention.key_blocks import TILE, load_block, masked_maximum
from omni_neuron.kernels.attention.octaves import (
    NOTHING_SEEN,
    OCTAVE,
    columns_to_rows,
    whole_octaves,
)
from omni_neuron.kernels.attention.state import keep_state, open_state
from omni_neuron.kernels.attention.window import KEY_BLOCK, QUERY_BLOCK
from omni_neuron.kernels.nki import nisa, nl

RESIDENT_KEYS = 8192  # so many stay in SBUF for all queries of a head; more are streamed for each block
TINY = 1.0e-36  # below the sum of weights of any row that has a key


@dataclass
class Head(nl.NKIObject):
    """One head of one rank and the shard of keys in hand, all in HBM.

    query `[D, Sq]`, keys `[D, S]`, values `[S, D]`, out `[D, Sq]`. `state` is what the queries carry from shard
    to shard; None where there is one shard only. `hidden` `[128, tiles]` and `length` `[128, 1]` say which
    keys count, None: all.
    """

    query: Any
    keys: Any
    values: Any
    out: Any
    state: Any
    hidden: Any
    length: Any
    scale: float
    first: bool
    last: bool


def attend(jobs: list[Any], shifts: Any, flags: Any) -> None:
    """Some heads against the shard in hand, each on the path that is safe for it.

    jobs: (head, starts of its blocks of queries); shifts and flags as `bounds.choose_paths` gives them. Where
    all heads are safe they are one stream of instructions, which no loop interrupts.
    """

    def all_in_window(_: Any) -> None:
        window_pass(jobs, shifts)

    chosen = nisa.register_alloc(flags[:, 0:1])
    nl.fori_loop(0, chosen, all_in_window)
    for i in range(len(jobs)):

        def in_window(_: Any, i: int = i) -> None:
            window_pass(jobs[i : i + 1], shifts[:, i : i + 1])

        def outside(_: Any, i: int = i) -> None:
            exact_pass(jobs[i][0], jobs[i][1])

        nisa.register_load(chosen, flags[:, nl.ds(1 + i, 1)])
        nl.fori_loop(0, chosen, in_window)
        nisa.register_load(chosen, flags[:, nl.ds(1 + len(jobs) + i, 1)])
        nl.fori_loop(0, chosen, outside)


def query_rows(queries: int, start: int) -> list[Any]:
    """(start within the block, rows) of the tiles of at most 128 queries in a block."""
    count = min(QUERY_BLOCK, queries - start)
    return [(i, min(TILE, count - i)) for i in range(0, count, TILE)]


def load_queries(head: Any, start: int) -> Any:
    count = min(QUERY_BLOCK, head.query.shape[1] - start)
    query = nl.ndarray((head.query.shape[0], count), head.query.dtype)
    nisa.dma_copy(query, head.query[:, nl.ds(start, count)])
    return query


def load_shard(head: Any) -> list[Any]:
    """All blocks of the shard where they may stay in SBUF, else nothing."""
    keys = head.keys.shape[1]
    blocks = []
    if keys <= RESIDENT_KEYS:
        for index in range(-(-keys // KEY_BLOCK)):
            blocks.append(block_of(head, [], index))  # noqa: PERF401
    return blocks


def block_of(head: Any, resident: list[Any], index: int) -> Any:
    """One block, loaded now unless the shard is resident."""
    if resident:
        return resident[index]
    return load_block(head.keys, head.values, index * KEY_BLOCK)


def pairs(tiles: list[Any]) -> list[Any]:
    """Two full tiles at a time; what is left alone."""
    found = []
    i = 0
    while i < len(tiles):
        together = i + 1 < len(tiles) and tiles[i + 1][1].shape[0] == tiles[i][1].shape[0]
        found.append(tiles[i : i + 2] if together else tiles[i : i + 1])
        i += 2 if together else 1
    return found


def weigh(head: Any, pair: list[Any], query: Any, shift: Any, bias: Any, turn: int) -> Any:
    """Weights exp(scale q.k - c) of a pair of tiles, `[keys, tiles, queries]` in the dtype of the values.

    `shift` is -c on every partition `[128, 1]`, or c for each query on every partition `[128, queries]`.
    """
    rows, count = pair[0][1].shape[0], query.shape[1]
    scores = in_bank((rows, len(pair), COLUMNS), nl.float32, 2 * (turn % 2))
    for j in range(len(pair)):
        nisa.nc_matmul(scores[:, j, 0:count], pair[j][0], query, accumulate=False)
    weights = nl.ndarray((rows, len(pair), count), head.values.dtype)
    if shift.shape[1] > 1:
        shifted = nl.ndarray((rows, len(pair), count), nl.float32)
        for j in range(len(pair)):
            nisa.scalar_tensor_tensor(
                shifted[:, j], scores[:, j, 0:count], nl.multiply, head.scale, nl.subtract, shift[0:rows]
            )
        for j in range(len(pair)):
            hidden = 0.0 if head.hidden is None else head.hidden[0:rows, nl.ds(pair[j][2], 1)]
            nisa.activation(weights[:, j], nl.exp, shifted[:, j], bias=hidden)
    elif bias is None:
        nisa.activation(weights, nl.exp, scores[:, :, 0:count], bias=shift[0:rows], scale=head.scale)
    else:
        for j in range(len(pair)):
            own = bias[0:rows, nl.ds(pair[j][2], 1)]
            nisa.activation(weights[:, j], nl.exp, scores[:, j, 0:count], bias=own, scale=head.scale)
    return weights


def gather(sums: list[Any], pair: list[Any], weights: Any, first: bool) -> None:
    """Add weights times [values | 1] to the sums `[queries, D + 1]`, one PSUM bank for 128 queries."""
    for j in range(len(pair)):
        for i in range(len(sums)):
            part = weights[:, j, nl.ds(i * TILE, sums[i].shape[0])]
            nisa.nc_matmul(sums[i], part, pair[j][1], accumulate=not (first and j == 0))


def new_sums(head: Any, start: int) -> list[Any]:
    width = head.query.shape[0] + 1
    sums = []
    for offset, rows in query_rows(head.query.shape[1], start):
        sums.append(in_bank((rows, width), nl.float32, SUMS + offset // TILE))
    return sums


@dataclass
class Pair(nl.NKIObject):
    """Weights of a pair of tiles that wait for their product with the values."""

    head: Any
    start: int
    sums: list[Any]
    state: Any
    tiles: list[Any]
    weights: Any
    first: bool
    last: bool


def window_pass(jobs: list[Any], shifts: Any) -> None:
    """Blocks of queries of some heads against the shard, each with its shift of `[128, heads, blocks]`.

    A shift that serves all rows makes sums of all shards add up: no row needs a correction.
    """
    waiting, finished, turn = None, None, 0
    for i in range(len(jobs)):
        head, starts = jobs[i]
        resident = load_shard(head)
        for start in starts:
            block = start // QUERY_BLOCK
            query = load_queries(head, start)
            shift = shifts[:, i, nl.ds(block, 1)]
            bias = None
            if head.hidden is not None:
                bias = nl.ndarray(head.hidden.shape, nl.float32)
                nisa.tensor_scalar(bias, head.hidden, nl.add, shift)
            sums = new_sums(head, start)
            state = open_state(head.state, block, head.query.shape[0], head.first)
            blocks = -(-head.keys.shape[1] // KEY_BLOCK)
            following = block_of(head, resident, 0)
            for index in range(blocks):
                tiles = pairs(following.tiles)
                if index + 1 < blocks:
                    following = block_of(head, resident, index + 1)
                for n in range(len(tiles)):
                    weights = weigh(head, tiles[n], query, shift, bias, turn)
                    turn += 1
                    if waiting is not None:
                        gather(waiting.sums, waiting.tiles, waiting.weights, waiting.first)
                    if finished is not None:
                        turn_out(finished[0], finished[1], finished[2], turn)
                        finished = None
                    if waiting is not None and waiting.last:
                        finished = settle(waiting)
                    begin, end = index + n == 0, index == blocks - 1 and n == len(tiles) - 1
                    waiting = Pair(head, start, sums, state, tiles[n], weights, begin, end)
    if waiting is not None:
        gather(waiting.sums, waiting.tiles, waiting.weights, waiting.first)
        if finished is not None:
            turn_out(finished[0], finished[1], finished[2], turn)
        last = settle(waiting)
        turn_out(last[0], last[1], last[2], turn + 1)


def settle(done: Any) -> tuple[Any, int, list[Any]]:
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
                nisa.tensor_copy(total, sums[i], engine=nisa.vector_engine)
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


def turn_out(head: Any, start: int, results: list[Any], turn: int) -> None:
    """Write rows `[queries, D]` as columns of out, a block at a time."""
    if len(results) == 0:
        return
    width, count = head.query.shape[0], min(QUERY_BLOCK, head.query.shape[1] - start)
    turned = in_bank((width, count), head.values.dtype, 2 * (turn % 2))
    for i in range(len(results)):
        nisa.nc_transpose(turned[:, nl.ds(i * TILE, results[i].shape[0])], results[i])
    block = nl.ndarray((width, count), head.values.dtype)
    nisa.tensor_copy(block, turned, engine=nisa.vector_engine)
    nisa.dma_copy(head.out[:, nl.ds(start, count)], block)


def exact_pass(head: Any, starts: list[int]) -> None:
    """As `window_pass`, with the running maximum of every row for a shift: for any scores."""
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
            weights = weigh(head, found[0], query, shift, None, 0)
            for n in range(len(found)):
                following = None
                if n + 1 < len(found):
                    following = weigh(head, found[n + 1], query, shift, None, n + 1)
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
