"""One head's queries and the shard of keys that they meet, and how both come into SBUF."""

from dataclasses import dataclass
from typing import Any

from omni_neuron.kernels.attention.banks import SUMS, in_bank
from omni_neuron.kernels.attention.key_blocks import TILE, load_block
from omni_neuron.kernels.attention.window import KEY_BLOCK, QUERY_BLOCK
from omni_neuron.kernels.limits import ceil_div
from omni_neuron.kernels.nki import nisa, nl

RESIDENT_KEYS = 8192  # so many stay in SBUF for all queries of a head; more are streamed for each block


@dataclass
class Head(nl.NKIObject):
    """One head of one rank and the shard of keys in hand, all in HBM.

    query `[D, Sq]`, keys `[D, S]`, values `[S, D]`, out `[D, Sq]`. `state` is what the queries carry from
    shard to shard; None where there is one shard only. `mask` `[128, 2, tiles]`, as `mask_after` gives it,
    and `length` `[128, 1]` say which keys count, None: all.
    """

    query: Any
    keys: Any
    values: Any
    out: Any
    state: Any
    mask: Any
    length: Any
    scale: float
    first: bool
    last: bool


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
        for index in range(ceil_div(keys, KEY_BLOCK)):
            blocks.append(block_of(head, [], index))
    return blocks


def block_of(head: Any, resident: list[Any], index: int) -> Any:
    """One block, loaded now unless the shard is resident."""
    if resident:
        return resident[index]
    return load_block(head.keys, head.values, index * KEY_BLOCK)


def new_sums(head: Any, start: int) -> list[Any]:
    width = head.query.shape[0] + 1
    sums = []
    for offset, rows in query_rows(head.query.shape[1], start):
        sums.append(in_bank((rows, width), nl.float32, SUMS + offset // TILE))
    return sums
