"""Live process groups for a layout, for programs that do not get theirs from an engine."""

from __future__ import annotations

import torch
import torch.distributed as dist

from omni_neuron.distributed.groups import ParallelContext, ParallelGroup
from omni_neuron.distributed.layout import ParallelLayout


def new_parallel_context(
    layout: ParallelLayout, *, tp_reduce_dtype: torch.dtype = torch.float32
) -> ParallelContext:
    """Groups of ``layout`` over the initialised default process group; every rank must call it.

    The text encoder shares the tensor-parallel group.

    Raises:
        LayoutError: the layout does not fill the world.
    """
    world_size = dist.get_world_size() if dist.is_initialized() else 1
    layout.check_world_size(world_size)
    tp, cp, cfg = (_new_group(layout, name) for name in ("tp", "cp", "cfg"))
    text_encoder = ParallelGroup("text_encoder", tp.ranks, tp.rank_in_group, tp.process_group)
    return ParallelContext(tp, cp, cfg, text_encoder, tp_reduce_dtype)


def _new_group(layout: ParallelLayout, name: str) -> ParallelGroup:
    rank = dist.get_rank() if dist.is_initialized() else 0
    mine = layout.group_of(name, rank)
    if len(mine) == 1:
        return ParallelGroup(name, mine, 0)
    process_group = None
    for ranks in layout.groups(name):
        # Every rank creates every group, in one order.
        group = dist.new_group(list(ranks))
        if ranks == mine:
            process_group = group
    return ParallelGroup.from_process_group(name, mine, process_group)
