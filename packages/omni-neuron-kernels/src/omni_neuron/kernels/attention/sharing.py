"""Which part of the heads a core has, and how many keys count."""

from typing import Any

from omni_neuron.kernels.attention.key_blocks import TILE
from omni_neuron.kernels.attention.window import QUERY_BLOCK
from omni_neuron.kernels.nki import nisa, nl
from omni_neuron.kernels.tiles import cores


def shared_heads(heads: int, queries: int) -> list[Any]:
    """(head, starts of its blocks of queries) for this core: whole heads, and half of an odd last one."""
    core, of = cores()
    starts = [start for start in range(0, queries, QUERY_BLOCK)]  # noqa: C416
    each = heads // of
    mine = [(head, starts) for head in range(core * each, core * each + each)]
    half = -(-len(starts) // of)
    part = starts[core * half : (core + 1) * half]
    if heads % of and len(part) > 0:
        mine.append((heads - 1, part))
    return mine


def valid_keys(lengths: Any, index: Any) -> Any:
    """Element `index` (int or register) of int32 lengths in HBM on every partition, fp32 `[128, 1]`."""
    whole = nl.ndarray((TILE, 1), nl.int32)
    everywhere = [[0, TILE], [1, 1]]
    if isinstance(index, int):
        nisa.dma_copy(whole, lengths.ap(everywhere, offset=index))
    else:
        nisa.dma_copy(whole, lengths.ap(everywhere, scalar_offset=index))
    length = nl.ndarray((TILE, 1), nl.float32)
    nisa.tensor_copy(length, whole, engine=nisa.vector_engine)
    return length
