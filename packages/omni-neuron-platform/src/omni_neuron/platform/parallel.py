"""From vLLM-Omni's groups to the parallel context that our models take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from vllm.distributed.parallel_state import get_tp_group
from vllm_omni.diffusion.distributed.parallel_state import get_cfg_group, get_sp_group

from omni_neuron.distributed.groups import ParallelContext, ParallelGroup
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.replica_groups import register_replica_groups
from omni_neuron.platform.stage_config.keys import REDUCE_DTYPES
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.mode import detect_mode


def layout_of(parallel_config: Any) -> ParallelLayout:
    """The layout that vLLM-Omni's `DiffusionParallelConfig` asks for."""
    return ParallelLayout(
        tp=parallel_config.tensor_parallel_size,
        cp=parallel_config.ulysses_degree * parallel_config.ring_degree,
        cfg=parallel_config.cfg_parallel_size,
    )


TP_REDUCE_DTYPE = "tp_reduce_dtype"


def tp_reduce_dtype(model_config: Mapping[str, Any] | None) -> torch.dtype:
    """The payload of tensor-parallel all-reduces: `tp_reduce_dtype` of the stage's `model_config`.

    Left out, it is float32 in CPU mode, which adds no rounding, and bfloat16 on hardware, which halves the
    bytes on the wire.

    Raises:
        InputError: the configuration names another dtype.
    """
    name = (model_config or {}).get(TP_REDUCE_DTYPE)
    if name is None:
        return torch.float32 if detect_mode().is_cpu else torch.bfloat16
    if name not in REDUCE_DTYPES:
        raise InputError(
            f"{TP_REDUCE_DTYPE} of model_config is {name!r}, but it must be {' or '.join(REDUCE_DTYPES)}; "
            "set one of them, or leave it out."
        )
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _group(name: str, coordinator: Any) -> ParallelGroup:
    return ParallelGroup.from_process_group(name, coordinator.ranks, coordinator.device_group)


def parallel_context(reduce_dtype: torch.dtype = torch.float32) -> ParallelContext:
    """This rank's groups. The text encoder is sharded over the tensor-parallel group.

    Args:
        reduce_dtype: payload of tensor-parallel all-reduces, see `tp_reduce_dtype`.
    """
    tp = _group("tp", get_tp_group())
    return ParallelContext(
        tp=tp,
        cp=_group("cp", get_sp_group()),
        cfg=_group("cfg", get_cfg_group()),
        text_encoder=ParallelGroup("text_encoder", tp.ranks, tp.rank_in_group, tp.process_group),
        tp_reduce_dtype=reduce_dtype,
    )


def register_live_groups(parallel_config: Any) -> None:
    """Tell the device's collectives the full partition behind each live process group.

    Raises:
        LayoutError: a live group differs from the layout's.
    """
    context = parallel_context()
    groups = (context.tp, context.cp, context.cfg)
    register_replica_groups(layout_of(parallel_config), {group.name: group.process_group for group in groups})
