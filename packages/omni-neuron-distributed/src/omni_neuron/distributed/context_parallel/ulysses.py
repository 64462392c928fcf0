"""DeepSpeed-Ulysses (Jacobs et al. 2023): around the attention, heads are cut instead of the sequence."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from omni_neuron.distributed.collectives import all_to_all
from omni_neuron.distributed.errors import ShardingError, divisors
from omni_neuron.distributed.groups import ParallelGroup

ExchangedAttention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""``attention(query, key, value)``, each ``[B, U * S, H/U, D]``"""


def ulysses_heads(num_heads: int, size: int, *, pad: bool = False) -> int:
    """Heads that each of ``size`` ranks attends with, of ``num_heads`` before the exchange.

    With ``pad`` a remainder is filled with heads of zeros. The work of every rank then grows by
    ``size * ulysses_heads(...) / num_heads``, and so do the exchanged bytes.

    Raises:
        ShardingError: ``size`` does not divide the heads, and ``pad`` is False.
    """
    if num_heads % size and not pad:
        choices = ", ".join(map(str, divisors(num_heads)))
        raise ShardingError(
            f"heads={num_heads} of each tensor-parallel rank must be divisible by ulysses={size}: choose "
            f"ulysses from {choices}."
        )
    return -(-num_heads // size)


def ulysses_attention(
    attention: ExchangedAttention,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    group: ParallelGroup,
    *,
    pad_heads: bool = False,
) -> torch.Tensor:
    """Attention with every rank's tokens and this rank's heads: two all-to-alls around ``attention``.

    Args:
        attention: given ``[B, U * S, H/U, D]``, the group's tokens in list order.
        query, key, value: ``[B, S, H, D]``, this rank's tokens; one shape and dtype.
        pad_heads: see :func:`ulysses_heads`.

    Returns:
        ``[B, S, H, D]``.

    Raises:
        ShardingError: the group's size does not divide the heads, and ``pad_heads`` is False.
    """
    heads = query.shape[2]
    padding = ulysses_heads(heads, group.size, pad=pad_heads) * group.size - heads
    together = torch.cat((query, key, value))
    if padding:
        together = functional.pad(together, (0, 0, 0, padding))
    query, key, value = all_to_all(together, group, split_dim=2, join_dim=1).chunk(3)
    attended = all_to_all(attention(query, key, value), group, split_dim=1, join_dim=2)
    return attended[:, :, :heads] if padding else attended
