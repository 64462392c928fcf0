"""Attention of many ranks for models: the ring where it can run, gathered keys and the twin elsewhere."""

import torch
import torch.distributed._functional_collectives  # registers the operators' shape functions
from torch import Tensor

from omni_neuron.kernels.attention.flash_operator import fits_flash_attention, require_attention_shapes
from omni_neuron.kernels.attention.twin import masked_attention_twin
from omni_neuron.kernels.gate import can_run_kernel
from omni_neuron.kernels.operator import kernel_operator
from omni_neuron.kernels.ranks import ALONE, group_of, launch_ranks, numbered
from omni_neuron.kernels.shapes import require_dims
from omni_neuron.runtime.adapter import get_adapter

SOURCE = "omni_neuron.kernels.attention.ring_kernel:ring_attention_kernel"


def fits_ring_attention(
    query: Tensor, keys: Tensor, values: Tensor, key_lengths: Tensor | None, scale: float, ranks: int = 1
) -> bool:
    """The kernel's gate: that of `flash_attention` for this rank's shards, all ranks' of one length.

    key_lengths is int32 with one entry for each rank of the world.
    """
    return (
        fits_flash_attention(query, keys, values, None, scale, ranks)
        and query.shape[2] == keys.shape[2]
        and (key_lengths is None or (key_lengths.dtype == torch.int32 and key_lengths.ndim == 1))
    )


def _fake(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    key_lengths: Tensor | None,
    scale: float,
    group_name: str,
) -> Tensor:
    return values.new_empty(query.shape)


@kernel_operator(_fake)
def _ring_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    key_lengths: Tensor | None,
    scale: float,
    group_name: str,
) -> Tensor:
    lengths = None if key_lengths is None else numbered(key_lengths, group_name)
    result: Tensor = launch_ranks(SOURCE, group_name, (query, keys, values, lengths, scale))
    return result


def ring_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    key_lengths: Tensor | None,
    scale: float,
    group_name: str = ALONE,
) -> Tensor:
    """Softmax(scale q.k) v of this rank's queries over the keys of all ranks of a group.

    Args:
        query: `[N, D, S]` of this rank, N = batch x heads, bfloat16 or float32.
        keys: `[N, D, S]` of this rank, the dtype of query.
        values: `[N, S, D]` of this rank, the dtype of query.
        key_lengths: int32 `[world]`, the same on all ranks: how many keys of each rank's shard count. What
            stands behind them must be finite, as must its scores. None: all count.
        scale: of the scores, above 0.
        group_name: of the process group around which keys travel, registered with the adapter; `ALONE`: no
            other rank.

    Returns:
        `[N, D, S]` in the dtype of query, for any order of the ranks in the group. Roundings as in
        `flash_attention`. The ring runs where `can_run_kernel` and `fits_ring_attention` say so; elsewhere
        keys and values are gathered and the twin attends to them.
    """
    require_attention_shapes(query, keys, values)
    if key_lengths is not None:
        require_dims("key_lengths", key_lengths, "[world]")
    ranks = _group(group_name)
    if can_run_kernel(query) and fits_ring_attention(query, keys, values, key_lengths, scale, len(ranks)):
        return _ring_attention(query, keys, values, key_lengths, scale, group_name)
    counts = None
    if key_lengths is not None:
        shard = torch.arange(keys.shape[2], device=keys.device)
        counts = (shard[None] < key_lengths[list(ranks)][:, None]).flatten().expand(keys.shape[0], -1)
    every = [_gathered(tensor, ranks, group_name) for tensor in (keys, values)]
    return masked_attention_twin(
        query, every[0].permute(1, 2, 0, 3).flatten(2), every[1].transpose(0, 1).flatten(1, 2), counts, scale
    )


def _gathered(tensor: Tensor, ranks: tuple[int, ...], group_name: str) -> Tensor:
    """The shards of all ranks of a group in ascending order of the ranks, `[ranks, ...]`."""
    if len(ranks) == 1:
        return tensor[None]
    started = torch.ops._c10d_functional.all_gather_into_tensor(tensor.contiguous(), len(ranks), group_name)
    flat: Tensor = torch.ops._c10d_functional.wait_tensor(started)
    return flat.reshape(len(ranks), *tensor.shape)


@torch.compiler.assume_constant_result
def _group(group_name: str) -> tuple[int, ...]:
    """This rank's group, ascending, as a process group gathers."""
    return (0,) if group_name == ALONE else tuple(sorted(group_of(get_adapter().replica_groups(group_name))))
