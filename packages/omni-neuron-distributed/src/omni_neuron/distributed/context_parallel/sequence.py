"""The token sequence cut over the context-parallel group, exact for every length.

A length that the group does not divide is padded with zeros at its end. Padding never enters a result:
padded keys are masked, padded query rows attend to real keys (so they stay finite) and are dropped.
Everything that has a value per token is cut alike: embeddings, rotary tables, timesteps and their
modulation ``[B, S, 6, D]``.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from omni_neuron.distributed.collectives import all_gather
from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.groups import ParallelGroup


def padded_length(length: int, group: ParallelGroup) -> int:
    """Smallest multiple of the group's size that holds ``length`` tokens."""
    return -(-length // group.size) * group.size


def split_sequence(x: torch.Tensor, group: ParallelGroup, dim: int) -> torch.Tensor:
    """This rank's equal share of ``x`` along ``dim``, zero-padded at the sequence's end.

    ``[..., S, ...] -> [..., ceil(S/cp), ...]``
    """
    if group.size == 1:
        return x
    dim = dim % x.ndim
    length = x.shape[dim]
    padding = padded_length(length, group) - length
    if padding:
        x = functional.pad(x, (0, 0) * (x.ndim - 1 - dim) + (0, padding))
    share = (length + padding) // group.size
    return x.narrow(dim, group.rank_in_group * share, share).contiguous()


def gather_sequence(x: torch.Tensor, group: ParallelGroup, dim: int, length: int) -> torch.Tensor:
    """The whole sequence of ``length`` tokens from every rank's share: inverse of :func:`split_sequence`."""
    if padded_length(length, group) != x.shape[dim] * group.size:
        raise ShardingError(
            f"length={length} does not belong to {group.size} shares of {x.shape[dim]} tokens: "
            "pass the length that was split."
        )
    if group.size == 1:
        return x
    return all_gather(x, group, dim).narrow(dim, 0, length)


def sequence_key_mask(
    length: int, group: ParallelGroup, device: torch.device | str | None = None
) -> torch.Tensor | None:
    """bool ``[S_padded]``, True for real tokens; None when nothing is padded."""
    total = padded_length(length, group)
    if total == length:
        return None
    return torch.arange(total, device=device) < length
