"""Which part of the heads a core has."""

from typing import Any

from omni_neuron.kernels.attention.window import QUERY_BLOCK
from omni_neuron.kernels.limits import ceil_div
from omni_neuron.kernels.tiles import cores


def shared_heads(heads: int, queries: int) -> list[Any]:
    """(head, starts of its blocks of queries) for this core: whole heads, and half of an odd last one."""
    core, of = cores()
    starts = list(range(0, queries, QUERY_BLOCK))
    each = heads // of
    mine = [(head, starts) for head in range(core * each, core * each + each)]
    half = ceil_div(len(starts), of)
    part = starts[core * half : (core + 1) * half]
    if heads % of and len(part) > 0:
        mine.append((heads - 1, part))
    return mine
