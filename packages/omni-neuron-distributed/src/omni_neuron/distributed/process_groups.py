"""Live process groups for a layout, for programs that do not get theirs from an engine."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.groups import ParallelContext, ParallelGroup
from omni_neuron.distributed.layout import ParallelLayout


def new_parallel_context(
    layout: ParallelLayout, *, tp_reduce_dtype: torch.dtype = torch.float32
) -> ParallelContext:
    """Groups of ``layout`` over the initialised default process group; every rank must call it.

    Dimensions of the same ranks share a process group.

    Raises:
        LayoutError: the layout does not fill the world.
    """
    world_size = dist.get_world_size() if dist.is_initialized() else 1
    layout.check_world_size(world_size)
    tp, cp, cfg = (new_parallel_group(name, layout.groups(name)) for name in ("tp", "cp", "cfg"))
    text_encoder, ulysses, ring = (
        _shared_or_new(name, layout, tp if name == "text_encoder" else cp)
        for name in ("text_encoder", "ulysses", "ring")
    )
    return ParallelContext(tp, cp, cfg, text_encoder, tp_reduce_dtype, ulysses, ring)


def _shared_or_new(name: str, layout: ParallelLayout, like: ParallelGroup) -> ParallelGroup:
    """The group of one dimension; it takes the process group of ``like`` where both have the same ranks."""
    partition = layout.groups(name)
    if like.ranks in partition:
        return ParallelGroup(name, like.ranks, like.rank_in_group, like.process_group)
    return new_parallel_group(name, partition)


def new_parallel_group(name: str, partition: Sequence[Sequence[int]]) -> ParallelGroup:
    """This rank's group out of a partition of the world, each part in list order; every rank must call it.

    Raises:
        LayoutError: the parts differ in size, or do not hold every rank once. No group is made then.
    """
    here = dist.get_rank() if dist.is_initialized() else 0
    world_size = dist.get_world_size() if dist.is_initialized() else 1
    held = sorted(rank for ranks in partition for rank in ranks)
    if held != list(range(world_size)) or len({len(ranks) for ranks in partition}) > 1:
        raise LayoutError(
            f"{name} partition {[tuple(ranks) for ranks in partition]} must hold each of {world_size} ranks "
            "once, in parts of one size: take it from ParallelLayout.groups."
        )
    mine = next(tuple(ranks) for ranks in partition if here in ranks)
    if len(mine) == 1:
        return ParallelGroup(name, mine, 0)
    process_group = None
    for ranks in partition:
        # Every rank creates every group, in one order.
        group = dist.new_group(list(ranks))
        if here in ranks:
            process_group = group
    return ParallelGroup.from_process_group(name, mine, process_group)
