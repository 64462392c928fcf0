"""Attention over a cut sequence by gathering every rank's keys and values."""

from __future__ import annotations

from collections.abc import Callable

import torch

from omni_neuron.distributed.collectives import all_gather
from omni_neuron.distributed.groups import ParallelGroup

AttentionFn = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None], torch.Tensor]
"""``attention(query [B, Sq, H, D], key [B, Sk, H, D], value [B, Sk, H, D], key_mask [B, Sk] or None)``"""


def gathered_attention(
    attention: AttentionFn,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    group: ParallelGroup,
    key_mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """This rank's queries over every rank's keys. A rank holds the keys of the whole group at once.

    Args:
        attention: the attention of one rank.
        query: ``[B, S, H, D]``.
        key, value: ``[B, S, H, D]``, this rank's share.
        key_mask: bool ``[B, n * S]`` over the keys of all n ranks in list order, True = attend.

    Returns:
        ``[B, S, H, D]``.
    """
    return attention(query, all_gather(key, group, 1), all_gather(value, group, 1), key_mask)
