"""Self-attention over a cut sequence: Ulysses, ring, K/V gather and their products behind one function."""

from __future__ import annotations

from collections.abc import Callable

import torch

from omni_neuron.distributed.collectives import all_gather
from omni_neuron.distributed.context_parallel.key_value_gather import AttentionFn, gathered_attention
from omni_neuron.distributed.context_parallel.online_softmax import AttentionWithLse
from omni_neuron.distributed.context_parallel.ring import ring_attention
from omni_neuron.distributed.context_parallel.ulysses import ulysses_attention
from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.groups import ParallelContext, ParallelGroup

RingFn = Callable[
    [torch.Tensor, torch.Tensor, torch.Tensor, ParallelGroup, torch.Tensor | None], torch.Tensor
]
"""``ring(query, key, value, group, key_mask)``: each ``[B, S, H, D]`` of this rank, the mask bool
``[B, group.size * S]`` over all of them -> ``[B, S, H, D]``"""


def context_parallel_attention(
    attention: AttentionFn,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    groups: ParallelContext | ParallelGroup,
    key_mask: torch.Tensor | None = None,
    *,
    ring: AttentionWithLse | None = None,
    whole_ring: RingFn | None = None,
    pad_heads: bool = False,
) -> torch.Tensor:
    """Self-attention of this rank's queries over every rank's keys.

    Over ``groups.ulysses`` tokens are exchanged for heads (two all-to-alls). Over ``groups.ring`` keys and
    values are gathered, or travel in a ring where ``ring`` or ``whole_ring`` is given.

    Args:
        attention: the attention of one rank, over ``H/tp/U`` heads.
        query, key, value: ``[B, S/cp, H/tp, D]``.
        groups: this rank's context; a context-parallel group alone has no Ulysses factor.
        key_mask: bool, True = attend: over the whole padded sequence, ``[S_padded]`` or
            ``[B, S_padded]``; or this rank's share of it, ``[B, S/cp]``, which costs a small gather and
            keeps every constant of this rank out of a graph. None for a sequence without padding.
        ring: attention over a block of keys with its log-sum-exp; None gathers.
        whole_ring: the whole way around at once, in place of ``ring``: a kernel with exchanges of its own.
        pad_heads: let Ulysses fill heads that it does not divide with zeros, see ``ulysses_heads``.

    Returns:
        ``[B, S/cp, H/tp, D]``; each row is the row that one rank would compute.

    Raises:
        ShardingError: the mask is of another length; Ulysses does not divide the heads.
    """
    if isinstance(groups, ParallelContext):
        ulysses, over = groups.ulysses, groups.ring
    else:
        ulysses, over = ParallelGroup.single("ulysses"), groups
    if over.size == 1:
        ring = whole_ring = None
    block_attention = None if whole_ring else ring
    mask = None
    if key_mask is not None:
        rows = key_mask.expand(query.shape[0], -1)
        mask = _mask_for(rows, query.shape[1], ulysses, over, travels=block_attention is not None)

    def across_blocks(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        if whole_ring is not None:
            return whole_ring(query, key, value, over, mask)
        if block_attention is not None:
            return ring_attention(block_attention, query, key, value, over, mask)
        return gathered_attention(attention, query, key, value, over, mask)

    if ulysses.size == 1:
        return across_blocks(query, key, value)
    return ulysses_attention(across_blocks, query, key, value, ulysses, pad_heads=pad_heads)


def _mask_for(
    key_mask: torch.Tensor, share: int, ulysses: ParallelGroup, over: ParallelGroup, *, travels: bool
) -> torch.Tensor:
    """The mask of the whole sequence, or of this rank's block of it where blocks travel."""
    block = share * ulysses.size
    whole = block * over.size
    length = key_mask.shape[1]
    if length == whole:
        return key_mask.narrow(1, over.rank_in_group * block, block) if travels else key_mask
    if length == share:
        mask = all_gather(key_mask, ulysses, 1)
        return mask if travels else all_gather(mask, over, 1)
    raise ShardingError(
        f"key_mask of {length} tokens must cover the {whole} of the padded sequence, or the "
        f"{share} of this rank: build it with sequence_key_mask."
    )
