"""Ring attention (Liu, Zaharia and Abbeel 2023): keys and values travel, queries stay."""

from __future__ import annotations

import torch

from omni_neuron.distributed.collectives import finish_permute, start_permute
from omni_neuron.distributed.context_parallel.online_softmax import AttentionWithLse, OnlineSoftmax
from omni_neuron.distributed.groups import ParallelGroup


def ring_attention(
    attention: AttentionWithLse,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    group: ParallelGroup,
    key_mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """This rank's queries over every rank's keys, with the keys of two ranks in memory at most.

    Position ``i`` attends to the blocks of positions ``i, i-1, ..., i+1`` in this order, always; the next
    block is on its way while the present one is attended to. Blocks are merged in the dtype of
    ``attention``'s results (float32 or wider) and rounded to ``query``'s once, at the end.

    Args:
        attention: attention over one block, with its log-sum-exp.
        query: ``[B, S, H, D]``.
        key, value: ``[B, S, H, D]``, this rank's block, of one dtype.
        key_mask: bool ``[B, S]`` over this rank's block, True = attend. It travels with the block, so no
            rank's place in the ring becomes part of the arithmetic. None on all ranks, or on none.

    Returns:
        ``[B, S, H, D]`` in the dtype of ``query``; zero for a row without a key in any block.
    """
    block = torch.stack((key, value))
    state: OnlineSoftmax | None = None
    for remaining in reversed(range(group.size)):
        if remaining:
            next_block = start_permute(block, group, 1)
            next_mask = None if key_mask is None else start_permute(key_mask, group, 1)
        out, lse = attention(query, block[0], block[1], key_mask)
        state = OnlineSoftmax.first(out, lse) if state is None else state.merge(out, lse)
        if remaining:
            block = finish_permute(next_block, group)
            key_mask = None if next_mask is None else finish_permute(next_mask, group)
    assert state is not None
    return state.result().to(query.dtype)
