"""Queries against a shard of keys with one shift for each block of queries.

Instructions are in the order in which a pipeline wants them: the scores of a pair of tiles go to the tensor
engine before the values of the pair before, across blocks of queries and heads, so that it never waits for an
exponential.
"""

from dataclasses import dataclass
from typing import Any

from omni_neuron.kernels.attention.head import block_of, load_queries, load_shard, new_sums
from omni_neuron.kernels.attention.products import add_weighted_values, pairs, weights_in_window
from omni_neuron.kernels.attention.results import merge_state, store_transposed
from omni_neuron.kernels.attention.state import open_state
from omni_neuron.kernels.attention.window import KEY_BLOCK, QUERY_BLOCK
from omni_neuron.kernels.limits import ceil_div
from omni_neuron.kernels.nki import nisa, nl


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
            if head.mask is not None:
                added = head.mask[:, 1]
                bias = nl.ndarray(added.shape, nl.float32)
                nisa.tensor_scalar(bias, added, nl.add, shift)
            sums = new_sums(head, start)
            state = open_state(head.state, block, head.query.shape[0], head.first)
            blocks = ceil_div(head.keys.shape[1], KEY_BLOCK)
            following = block_of(head, resident, 0)
            for index in range(blocks):
                tiles = pairs(following.tiles)
                if index + 1 < blocks:
                    following = block_of(head, resident, index + 1)
                for n in range(len(tiles)):
                    weights = weights_in_window(head, tiles[n], query, shift, bias, turn)
                    turn += 1
                    if waiting is not None:
                        add_weighted_values(waiting.sums, waiting.tiles, waiting.weights, waiting.first)
                    if finished is not None:
                        store_transposed(finished[0], finished[1], finished[2], turn)
                        finished = None
                    if waiting is not None and waiting.last:
                        finished = merge_state(waiting)
                    begin, end = index + n == 0, index == blocks - 1 and n == len(tiles) - 1
                    waiting = Pair(head, start, sums, state, tiles[n], weights, begin, end)
    if waiting is not None:
        add_weighted_values(waiting.sums, waiting.tiles, waiting.weights, waiting.first)
        if finished is not None:
            store_transposed(finished[0], finished[1], finished[2], turn)
        last = merge_state(waiting)
        store_transposed(last[0], last[1], last[2], turn + 1)
