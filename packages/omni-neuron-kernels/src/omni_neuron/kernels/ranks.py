"""Launching kernels in which several ranks take part.

On a device every rank launches for itself and the kernels meet on the wire. An interpreter of kernels lives
in one process and needs all ranks at once, so there every process gathers everybody's arguments, interprets
the whole group, and keeps what its own rank computed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import _resolve_process_group

from omni_neuron.kernels.interpreter import per_rank, simulator
from omni_neuron.kernels.operator import launch, load
from omni_neuron.runtime import envs
from omni_neuron.runtime.adapter import ReplicaGroups, get_adapter
from omni_neuron.runtime.errors import InputError

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import GroupName  # absent from older versions

ALONE = ""


def launch_ranks(source: str, group_name: str, arguments: Sequence[Any]) -> Any:
    """Run the kernel `module:name` together with the other ranks of a process group.

    The kernel gets one positional argument more than `arguments`, the last: `replica_groups`, the partition
    of the world as a tuple of tuples of ranks, or None where there is no other rank.

    Args:
        source: `module:function` of the NKI source.
        group_name: `group_name` of the process group, whose partition is registered with the adapter;
            `ALONE` for a kernel of one rank.
        arguments: the kernel's positional arguments on this rank.

    Returns:
        What the kernel returns on this rank. KeyError where no partition is registered under `group_name`.
    """
    groups = get_adapter().replica_groups(group_name) if group_name != ALONE else ()
    if not groups or len(groups[0]) == 1:
        return launch(source, *arguments, None)
    if get_adapter().name == "cpu":
        return _interpret(source, group_name, groups, tuple(arguments))
    return launch(source, *arguments, groups)


def group_of(groups: ReplicaGroups) -> tuple[int, ...]:
    """The group of a partition that this process belongs to."""
    return next(group for group in groups if dist.get_rank() in group)


def numbered(by_rank: Tensor, group_name: str) -> Tensor:
    """A table with one row for each rank of the world, for a kernel that looks ranks up in it.

    A device's kernels know global ranks; those of `launch_ranks` in an interpreter know places in the group.
    InputError where the table has not one row for each rank.
    """
    groups = get_adapter().replica_groups(group_name) if group_name != ALONE else ((0,),)
    world = sum(len(group) for group in groups)
    if by_rank.shape[0] != world:
        raise InputError(f"a table of {by_rank.shape[0]} rows must have one for each of {world} ranks.")
    if group_name == ALONE:
        return by_rank
    alone = len(groups[0]) == 1
    return by_rank[list(group_of(groups))] if alone or get_adapter().name == "cpu" else by_rank


def _interpret(source: str, group_name: str, groups: ReplicaGroups, arguments: tuple[Any, ...]) -> Any:
    """All ranks of the group in this process; the interpreter numbers them by their place in the list."""
    gathered, place = _everybody(group_name, groups, arguments)
    together = (tuple(range(len(gathered))),)
    run = simulator().simulate
    shared = per_rank([(*values, together) for values in gathered])
    found = run(load(source), *shared, lnc=envs.logical_nc_config(), ranks=len(gathered))
    return found[place]


def _everybody(
    group_name: str, groups: ReplicaGroups, arguments: tuple[Any, ...]
) -> tuple[list[tuple[Any, ...]], int]:
    """The arguments of all ranks of this rank's group in list order, and this rank's place among them.

    This rank's own are the very tensors that were passed, so that a kernel can write into them.
    """
    process_group = _resolve_process_group(cast("GroupName", group_name))
    gathered: list[Any] = [None] * process_group.size()
    dist.all_gather_object(gathered, arguments, group=process_group)
    # The process group has sorted its ranks; the partition keeps their order.
    by_rank = dict(zip(dist.get_process_group_ranks(process_group), gathered, strict=True))
    group = group_of(groups)
    place = group.index(dist.get_rank())
    ordered = [by_rank[rank] for rank in group]
    ordered[place] = arguments
    return ordered, place
