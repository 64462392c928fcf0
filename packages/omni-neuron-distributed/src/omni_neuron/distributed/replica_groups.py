"""What the compiler must know about each process group: the whole partition of the world it belongs to.

Groups made by ``torch.distributed.new_group`` reach a device compiler as a name only. The partition is
registered under that name, from the layout that the live groups were built from. All checks come before the
first registration, so that a disagreement leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

import torch.distributed as dist

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.groups import ParallelContext
from omni_neuron.distributed.layout import DIMENSIONS, ParallelLayout
from omni_neuron.distributed.placement import place
from omni_neuron.distributed.topology import host_topology
from omni_neuron.runtime.adapter import get_adapter

ProcessGroups = Mapping[str, dist.ProcessGroup | None]
Partition = list[tuple[int, ...]]


@overload
def register_replica_groups(layout: ParallelLayout, groups: ProcessGroups, /) -> None: ...


@overload
def register_replica_groups(tp_size: int, cp_size: int, /) -> None: ...


def register_replica_groups(layout: ParallelLayout | int, groups: ProcessGroups | int, /) -> None:
    """Register the partition of every live group of a layout, keyed by its ``group_name``.

    With two sizes in place of a layout and its groups, guidance takes the rest of the world, the layout is
    placed on this host, and every live group with the ranks of one of its dimensions is registered.

    Args:
        layout: the layout that fills the world, or the degree of tensor parallelism.
        groups: dimension (``"tp"``, ``"cp"``, ``"ulysses"``, ...) to this rank's live group; None, or no
            entry, for a dimension of size 1. Or the degree of context parallelism.

    Raises:
        LayoutError: a live group's ranks are not those of the layout, or a dimension above 1 has no
            group. Nothing is registered then.
        TypeError: a size beside a layout or its groups.
    """
    if isinstance(layout, int) and isinstance(groups, int):
        _register(_found_partitions(_layout_of_sizes(layout, groups)))
    elif isinstance(layout, ParallelLayout) and isinstance(groups, Mapping):
        _register(_partitions(layout, groups))
    else:
        raise TypeError("register_replica_groups takes a layout and its groups by dimension, or two sizes.")


def register_context(layout: ParallelLayout, context: ParallelContext) -> None:
    """Register all groups of a context.

    Beyond :func:`register_replica_groups` it compares the order of the ranks, which a process group does not
    keep and a :class:`ParallelGroup` does.

    Raises:
        LayoutError: a group differs from the layout's in members or order. Nothing is registered then.
    """
    live = (context.tp, context.cp, context.cfg, context.text_encoder, context.ulysses, context.ring)
    for group in live:
        expected = layout.group_of(group.name, _rank())
        if group.size > 1 and group.ranks != expected:
            raise _disagreement(group.name, group.ranks, expected, layout)
    _register(_partitions(layout, {group.name: group.process_group for group in live}))


def _partitions(layout: ParallelLayout, groups: ProcessGroups) -> dict[str, Partition]:
    layout.check_world_size(dist.get_world_size() if dist.is_initialized() else 1)
    factors = ("ulysses", "ring") if min(layout.ulysses, layout.ring) > 1 else ()
    partitions: dict[str, Partition] = {}
    for name in dict.fromkeys((*DIMENSIONS, *factors, *groups)):
        expected = layout.group_of(name, _rank())
        group = groups.get(name)
        live = (_rank(),) if group is None else tuple(dist.get_process_group_ranks(group))
        # `new_group` sorts its ranks, so only the layout knows their order.
        if sorted(live) != sorted(expected):
            raise _disagreement(name, live, expected, layout)
        if group is None or len(expected) == 1:
            continue
        partition = layout.groups(name)
        if sorted(partitions.setdefault(group.group_name, partition)) != sorted(partition):
            raise LayoutError(
                f"live {name} group {live} is part of two partitions of {layout}: give each its own group."
            )
    return partitions


def _found_partitions(layout: ParallelLayout) -> dict[str, Partition]:
    """Those of all live groups of fitting ranks: no two dimensions share more than one rank."""
    partitions: dict[str, Partition] = {}
    for name in DIMENSIONS:
        expected = layout.group_of(name, _rank())
        if len(expected) == 1:
            continue
        live = dist.distributed_c10d._world.pg_names
        found = [group for group in live if sorted(dist.get_process_group_ranks(group)) == sorted(expected)]
        if not found:
            raise _disagreement(name, (_rank(),), expected, layout)
        partitions |= {group.group_name: layout.groups(name) for group in found}
    return partitions


def _register(partitions: Mapping[str, Partition]) -> None:
    adapter = get_adapter()
    for group_name, partition in partitions.items():
        adapter.register_replica_groups(group_name, partition)


def _layout_of_sizes(tp_size: int, cp_size: int) -> ParallelLayout:
    world_size = dist.get_world_size() if dist.is_initialized() else 1
    replica = ParallelLayout(tp_size, cp_size)
    if world_size % replica.world_size:
        raise LayoutError(f"{replica} must divide the world of {world_size} ranks: change a size.")
    return place(ParallelLayout(tp_size, cp_size, world_size // replica.world_size), host_topology())


def _rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def _disagreement(
    name: str, live: tuple[int, ...], expected: tuple[int, ...], layout: ParallelLayout
) -> LayoutError:
    return LayoutError(
        f"live {name} group {live} of rank {_rank()} must hold the ranks {expected} of {layout}: "
        "build the groups from this layout."
    )
