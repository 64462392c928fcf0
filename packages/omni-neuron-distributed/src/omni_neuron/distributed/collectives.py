"""Functional collectives in list order.

The operators are those of ``torch.distributed._functional_collectives``, called by group name, so that
Dynamo traces them into one graph and no process-group object is captured. Every function is the
identity on a group of one rank.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.distributed._functional_collectives  # registers the operators' shape functions

from omni_neuron.distributed.groups import ParallelGroup

_ops = torch.ops._c10d_functional


def all_reduce(x: torch.Tensor, group: ParallelGroup) -> torch.Tensor:
    """Sum of every rank's ``x``, in the dtype of ``x`` and with equal bits on all ranks."""
    if group.size == 1:
        return x
    pending = _ops.all_reduce(x.contiguous(), "sum", group.group_name)
    return cast(torch.Tensor, _ops.wait_tensor(pending))


def all_gather(x: torch.Tensor, group: ParallelGroup, dim: int) -> torch.Tensor:
    """Every rank's ``x`` of one shape, concatenated along ``dim`` in list order."""
    if group.size == 1:
        return x
    dim = dim % x.ndim
    stacked = _stack_ranks(x, group)
    return stacked.movedim(0, dim).flatten(dim, dim + 1)


def all_gather_stacked(x: torch.Tensor, group: ParallelGroup) -> torch.Tensor:
    """Every rank's ``x`` of one shape, stacked in list order: ``[group.size, *x.shape]``."""
    if group.size == 1:
        return x.unsqueeze(0)
    return _stack_ranks(x, group)


def _stack_ranks(x: torch.Tensor, group: ParallelGroup) -> torch.Tensor:
    flat = x.contiguous().unsqueeze(0)
    pending = _ops.all_gather_into_tensor(flat, group.size, group.group_name)
    stacked = cast(torch.Tensor, _ops.wait_tensor(pending))
    # `new_group` sorts its ranks and host collectives follow it; device collectives follow the list.
    if x.device.type == "cpu" and group.process_group_order != tuple(range(group.size)):
        stacked = torch.stack([stacked[position] for position in group.process_group_order])
    return stacked
