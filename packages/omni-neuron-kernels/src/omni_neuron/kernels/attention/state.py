"""What a block of queries carries from shard to shard.

Sums of weighted values, sums of weights, and the octaves of the shift: `[128, 4, D + 2]` fp32, query
128 i + p of the block at [p, i]. Where all of them fit, they stay in SBUF; else a block's are loaded and
stored in one piece each.
"""

from typing import Any

from omni_neuron.kernels.attention.key_blocks import TILE
from omni_neuron.kernels.attention.window import QUERY_BLOCK
from omni_neuron.kernels.limits import ceil_div
from omni_neuron.kernels.nki import nisa, nl

TILES = QUERY_BLOCK // TILE
RESIDENT_BYTES = 64 * 1024  # of a partition of SBUF


def new_states(heads: int, queries: int, width: int) -> list[Any]:
    """States of some heads: each `[128, blocks, 4, width + 2]` in SBUF, or with blocks first in HBM."""
    blocks = ceil_div(queries, QUERY_BLOCK)
    states = []
    resident = heads * blocks * TILES * (width + 2) * 4 <= RESIDENT_BYTES
    for _ in range(heads):
        if resident:
            states.append(nl.ndarray((TILE, blocks, TILES, width + 2), nl.float32))
        else:
            states.append(nl.ndarray((blocks, TILE, TILES, width + 2), nl.float32, buffer=nl.hbm))
    return states


def open_state(state: Any, block: int, width: int, first: bool) -> Any:
    """The state of one block in SBUF, `[128, 4, width + 2]`; undefined before the first shard."""
    if state is not None and state.buffer == nl.sbuf:
        return state[:, block]
    opened = nl.ndarray((TILE, TILES, width + 2), nl.float32)
    if state is not None and not first:
        nisa.dma_copy(opened, state[block])
    return opened


def keep_state(state: Any, block: int, opened: Any) -> None:
    """Put the state of one block where the next shard finds it."""
    if state.buffer != nl.sbuf:
        nisa.dma_copy(state[block], opened)
