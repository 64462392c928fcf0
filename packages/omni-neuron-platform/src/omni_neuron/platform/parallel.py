"""From vLLM-Omni's groups to the parallel context that our models take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from vllm.distributed.parallel_state import get_tp_group
from vllm_omni.diffusion.distributed.parallel_state import get_cfg_group, get_sp_group

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.groups import ParallelContext, ParallelGroup
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import ROUTED_GROUPS, place
from omni_neuron.distributed.replica_groups import register_context
from omni_neuron.distributed.topology import Topology, host_topology
from omni_neuron.platform.placed_groups import replace_groups
from omni_neuron.platform.stage_config.config import written_indices
from omni_neuron.runtime import envs
from omni_neuron.runtime.mode import detect_mode
from omni_neuron.runtime.value_kinds import INDEX_LIST

TP_REDUCE_DTYPE = "tp_reduce_dtype"
RING_ATTENTION = "ring_attention"
PLACEMENT = "placement"


def layout_of(od_config: Any) -> ParallelLayout:
    """The layout that vLLM-Omni's configuration asks for: its degrees, and `placement` of model_config.

    `check_config` has read the placement by its rule before.

    Raises:
        LayoutError: the placement is no permutation of the ranks.
    """
    degrees, placement = od_config.parallel_config, (od_config.model_config or {}).get(PLACEMENT)
    return ParallelLayout(
        tp=degrees.tensor_parallel_size,
        cp=degrees.ulysses_degree * degrees.ring_degree,
        cfg=degrees.cfg_parallel_size,
        ulysses=degrees.ulysses_degree,
        ring=degrees.ring_degree,
        placement=None if placement is None else INDEX_LIST.parse(placement),
    )


def tp_reduce_dtype(model_config: Mapping[str, Any] | None) -> torch.dtype:
    """The payload of tensor-parallel all-reduces: `tp_reduce_dtype` of the stage's `model_config`.

    Left out, it is float32 in CPU mode, which adds no rounding, and bfloat16 on hardware, which halves the
    bytes on the wire. `check_config` has read it by its rule before.
    """
    name = (model_config or {}).get(TP_REDUCE_DTYPE)
    if name is None:
        return torch.float32 if detect_mode().is_cpu else torch.bfloat16
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _group(name: str, coordinator: Any) -> ParallelGroup:
    return ParallelGroup.from_process_group(name, coordinator.ranks, coordinator.device_group)


def parallel_context(model_config: Mapping[str, Any] | None = None) -> ParallelContext:
    """This rank's groups. The text encoder is sharded over the tensor-parallel group.

    Args:
        model_config: that of the stage; `tp_reduce_dtype` and `ring_attention` of it are read.
    """
    tp, sequence = _group("tp", get_tp_group()), get_sp_group()
    row, column = divmod(sequence.rank_in_group, sequence.ulysses_world_size)
    first = row * sequence.ulysses_world_size
    ulysses = sequence.ranks[first : first + sequence.ulysses_world_size]
    ring = sequence.ranks[column :: sequence.ulysses_world_size]
    return ParallelContext(
        tp=tp,
        cp=_group("cp", sequence),
        cfg=_group("cfg", get_cfg_group()),
        text_encoder=ParallelGroup("text_encoder", tp.ranks, tp.rank_in_group, tp.process_group),
        tp_reduce_dtype=tp_reduce_dtype(model_config),
        ulysses=ParallelGroup.from_process_group("ulysses", ulysses, sequence.ulysses_group),
        ring=ParallelGroup.from_process_group("ring", ring, sequence.ring_group),
        ring_attention=bool((model_config or {}).get(RING_ATTENTION)),
    )


def place_groups(od_config: Any) -> None:
    """Give the engine the groups that this machine can route, and the device's collectives their partitions.

    Both come from one layout: with the placement that it carries, else the one that `place` finds.

    Raises:
        LayoutError: no placement of this layout routes here, also not on the visible cores, or a live group
            differs from the layout's.
    """
    topology = host_topology()
    layout = place(layout_of(od_config), topology)
    check_cores(layout, topology)
    if layout.placement is not None:
        replace_groups(layout)
    register_context(layout, parallel_context())


def check_cores(layout: ParallelLayout, topology: Topology) -> None:
    """Refuse visible cores on which the ranks of a layout do not route, though on the first ones they do.

    Raises:
        LayoutError: names the group and its cores.
    """
    cores = envs.visible_devices()
    if cores is None or len(cores) < layout.world_size or not topology.torus_rule:
        return
    for name in ROUTED_GROUPS:
        for group in layout.groups(name):
            reason = topology.why_not([cores[rank] for rank in group])
            if reason is not None:
                raise LayoutError(
                    f"{envs.visible_devices.name} is {written_indices(cores)}, but on these cores the {name} "
                    f"group {list(group)} of {layout} cannot be built, {reason}; use the first "
                    f"{layout.world_size} cores."
                )
