"""From vLLM-Omni's groups to the parallel context that our models take."""

from __future__ import annotations

from typing import Any

import torch
from vllm.distributed.parallel_state import get_tp_group
from vllm_omni.diffusion.distributed.parallel_state import get_cfg_group, get_sp_group

from omni_neuron.distributed.groups import ParallelContext, ParallelGroup
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.replica_groups import register_replica_groups


def layout_of(parallel_config: Any) -> ParallelLayout:
    """The layout that vLLM-Omni's `DiffusionParallelConfig` asks for."""
    return ParallelLayout(
        tp=parallel_config.tensor_parallel_size,
        cp=parallel_config.ulysses_degree * parallel_config.ring_degree,
        cfg=parallel_config.cfg_parallel_size,
    )


def _group(name: str, coordinator: Any) -> ParallelGroup:
    return ParallelGroup.from_process_group(name, coordinator.ranks, coordinator.device_group)


def parallel_context(tp_reduce_dtype: torch.dtype = torch.float32) -> ParallelContext:
    """This rank's groups. The text encoder is sharded over the tensor-parallel group."""
    tp = _group("tp", get_tp_group())
    return ParallelContext(
        tp=tp,
        cp=_group("cp", get_sp_group()),
        cfg=_group("cfg", get_cfg_group()),
        text_encoder=ParallelGroup("text_encoder", tp.ranks, tp.rank_in_group, tp.process_group),
        tp_reduce_dtype=tp_reduce_dtype,
    )


def register_live_groups(parallel_config: Any) -> None:
    """Tell the device's collectives the full partition behind each live process group.

    Raises:
        LayoutError: a live group differs from the layout's.
    """
    context = parallel_context()
    groups = (context.tp, context.cp, context.cfg)
    register_replica_groups(layout_of(parallel_config), {group.name: group.process_group for group in groups})
