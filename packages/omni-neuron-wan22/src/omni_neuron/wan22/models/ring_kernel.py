"""Self-attention around the ring as one kernel, in place of a ring of blocks."""

from __future__ import annotations

import torch
import torch.distributed as dist

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.kernels.attention import token_major_ring_attention


def ring_kernel(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    group: ParallelGroup,
    key_mask: torch.Tensor | None,
) -> torch.Tensor:
    """The kernels package's ring attention, as `context_parallel_attention` calls it.

    ``[B, S, H, D]`` of this rank each; ``key_mask`` bool ``[B, group.size * S]``, the same for every entry of
    the batch, False from the end of the sequence on.
    """
    lengths = None if key_mask is None else _lengths_by_rank(key_mask[0], group)
    return token_major_ring_attention(query, key, value, lengths, query.shape[-1] ** -0.5, group.group_name)


def _lengths_by_rank(key_mask: torch.Tensor, group: ParallelGroup) -> torch.Tensor:
    """How many keys of each rank of the world count, int32; 0 for those outside of the group."""
    counts = key_mask.view(group.size, -1).sum(dim=1, dtype=torch.int32)
    by_rank = torch.zeros(dist.get_world_size(), dtype=torch.int32, device=key_mask.device)
    by_rank[list(group.ranks)] = counts
    return by_rank
