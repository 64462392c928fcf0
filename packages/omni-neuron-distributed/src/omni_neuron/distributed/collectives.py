"""Functional collectives in list order.

The operators are those of ``torch.distributed._functional_collectives``, called by group name, so that
Dynamo traces them into one graph and no process-group object is captured. Every function is the
identity on a group of one rank.

``new_group`` sorts its ranks. Host collectives follow the sorted order, device collectives the order of
the list; here every function speaks of list positions, and :func:`_to_live` and :func:`_to_list`
translate on a host.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.distributed._functional_collectives  # registers the operators' shape functions

from omni_neuron.distributed.errors import LayoutError, shard_size
from omni_neuron.distributed.groups import ParallelGroup

_ops = torch.ops._c10d_functional


def all_reduce(x: torch.Tensor, group: ParallelGroup) -> torch.Tensor:
    """Sum of every rank's ``x``, in the dtype of ``x`` and with equal bits on all ranks."""
    if group.size == 1:
        return x
    return _wait(_ops.all_reduce(x.contiguous(), "sum", group.group_name))


def all_gather(x: torch.Tensor, group: ParallelGroup, dim: int) -> torch.Tensor:
    """Every rank's ``x`` of one shape, concatenated along ``dim`` in list order."""
    if group.size == 1:
        return x
    return _join(all_gather_stacked(x, group), dim % x.ndim)


def all_gather_stacked(x: torch.Tensor, group: ParallelGroup) -> torch.Tensor:
    """Every rank's ``x`` of one shape, stacked in list order: ``[group.size, *x.shape]``."""
    if group.size == 1:
        return x.unsqueeze(0)
    flat = x.contiguous().unsqueeze(0)
    gathered = _wait(_ops.all_gather_into_tensor(flat, group.size, group.group_name))
    return _to_list(gathered, group)


def reduce_scatter(x: torch.Tensor, group: ParallelGroup, dim: int) -> torch.Tensor:
    """This rank's part of the sum of every rank's ``x``: part ``i`` along ``dim`` goes to position ``i``.

    Raises:
        ShardingError: the group's size does not divide ``dim``.
    """
    if group.size == 1:
        return x
    parts = _to_live(_cut(x, group, dim), group).flatten(0, 1).contiguous()
    part = _wait(_ops.reduce_scatter_tensor(parts, "sum", group.size, group.group_name))
    return part.movedim(0, dim % x.ndim)


def all_to_all(x: torch.Tensor, group: ParallelGroup, split_dim: int, join_dim: int) -> torch.Tensor:
    """Part ``i`` of ``x`` along ``split_dim`` goes to position ``i``; what comes joins along ``join_dim``.

    ``split_dim`` shrinks and ``join_dim`` grows by the group's size; both follow list order.

    Raises:
        ShardingError: the group's size does not divide ``split_dim``.
    """
    if group.size == 1:
        return x
    parts = _to_live(_cut(x, group, split_dim), group)  # [n, split/n, ...]
    sizes = [1] * group.size
    exchanged = _wait(_ops.all_to_all_single(parts.contiguous(), sizes, sizes, group.group_name))
    received = _to_list(exchanged, group).movedim(1, split_dim % x.ndim + 1)
    return _join(received, join_dim % x.ndim)


def permute(x: torch.Tensor, group: ParallelGroup, shift: int) -> torch.Tensor:
    """The ``x`` of the rank ``shift`` positions before this one in the list, cyclically."""
    return finish_permute(start_permute(x, group, shift), group)


def start_permute(x: torch.Tensor, group: ParallelGroup, shift: int) -> torch.Tensor:
    """:func:`permute` under way, for :func:`finish_permute`; work done in between overlaps with it.

    A device has no send and receive, and batched ones do not trace. This is an all-to-all whose only
    non-empty part is the whole ``x``, so each rank sends its bytes once. A compiler that finds the one
    non-zero split at distance ``shift``, the same on every rank, may issue a collective permute.
    """
    if group.size == 1:
        return x
    sends, receives = [0] * group.size, [0] * group.size
    sends[_live_position(x, group, group.rank_in_group + shift)] = 1
    receives[_live_position(x, group, group.rank_in_group - shift)] = 1
    message = x.contiguous().unsqueeze(0)
    return cast(torch.Tensor, _ops.all_to_all_single(message, receives, sends, group.group_name))


def finish_permute(pending: torch.Tensor, group: ParallelGroup) -> torch.Tensor:
    """What :func:`start_permute` over ``group`` brings."""
    if group.size == 1:
        return pending
    return _wait(pending).squeeze(0)


def broadcast(x: torch.Tensor, group: ParallelGroup, source: int) -> torch.Tensor:
    """The ``x`` of list position ``source``, on every rank; all pass one shape and dtype.

    Raises:
        LayoutError: there is no such position.
    """
    if not 0 <= source < group.size:
        raise LayoutError(
            f"source={source} must be a position in the {group.name} group, 0..{group.size - 1}."
        )
    if group.size == 1:
        return x
    return _wait(_ops.broadcast(x.contiguous(), _live_position(x, group, source), group.group_name))


def _wait(pending: torch.Tensor) -> torch.Tensor:
    return cast(torch.Tensor, _ops.wait_tensor(pending))


def _cut(x: torch.Tensor, group: ParallelGroup, dim: int) -> torch.Tensor:
    """``[..., n * m, ...] -> [n, m, ...]``: the parts along ``dim``, which comes second."""
    part = shard_size(f"dimension {dim}", x.shape[dim], group.size, degree=group.name)
    leading = x.movedim(dim, 0)
    return leading.reshape(group.size, part, *leading.shape[1:])


def _join(stacked: torch.Tensor, dim: int) -> torch.Tensor:
    """``[n, ..., m, ...] -> [..., n * m, ...]``"""
    return stacked.movedim(0, dim).flatten(dim, dim + 1)


def _in_list_order(x: torch.Tensor, group: ParallelGroup) -> bool:
    """Whether a collective on ``x`` follows the list by itself."""
    return x.device.type != "cpu" or group.process_group_order == tuple(range(group.size))


def _live_position(x: torch.Tensor, group: ParallelGroup, position: int) -> int:
    """Where a list position stands in the order that a collective on ``x`` follows."""
    position %= group.size
    return position if _in_list_order(x, group) else group.process_group_order[position]


def _to_list(parts: torch.Tensor, group: ParallelGroup) -> torch.Tensor:
    """Parts in the order of a collective on them, put into list order."""
    if _in_list_order(parts, group):
        return parts
    return torch.stack([parts[live] for live in group.process_group_order])


def _to_live(parts: torch.Tensor, group: ParallelGroup) -> torch.Tensor:
    """Parts in list order, put into the order of a collective on them: inverse of :func:`_to_list`."""
    if _in_list_order(parts, group):
        return parts
    return torch.stack([parts[group.process_group_order.index(live)] for live in range(group.size)])
