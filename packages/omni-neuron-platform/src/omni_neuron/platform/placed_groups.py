"""The engine's groups, made anew where the machine's interconnect asks for other ranks.

vLLM-Omni builds contiguous and strided groups. On a trn2 not all of those can be routed, so a layout there
may carry a placement. Its groups replace the engine's, in list order: it says who holds which shard.
"""

from __future__ import annotations

import torch.distributed as dist
from vllm.distributed import parallel_state as vllm_groups
from vllm_omni.diffusion.distributed import parallel_state as omni_groups

from omni_neuron.distributed.layout import ParallelLayout


def replace_groups(layout: ParallelLayout) -> None:
    """Replace tensor, sequence and guidance groups by those of a placed layout; every rank must call it.

    The groups of the other dimensions hold one rank each, wherever the ranks are.
    """
    world = omni_groups.get_world_group()
    backend = dist.get_backend(world.device_group)
    for coordinator in (omni_groups._CFG, omni_groups._SP, vllm_groups._TP):
        coordinator.destroy()
    sequence = _lists(layout, "cp")
    ulysses_group, ring_group, allgather_group = omni_groups.set_seq_parallel_pg(
        layout.ulysses, layout.ring, world.rank_in_group, layout.world_size, sp_group_ranks=sequence
    )
    omni_groups._SP = omni_groups.init_model_parallel_group(
        sequence,
        world.local_rank,
        backend,
        "sequence",
        ulysses_group=ulysses_group,
        ring_group=ring_group,
        allgather_group=allgather_group,
    )
    omni_groups._CFG = omni_groups.init_model_parallel_group(
        _lists(layout, "cfg"), world.local_rank, backend, "classifier_free_guidance"
    )
    vllm_groups._TP = omni_groups.init_model_parallel_group(
        _lists(layout, "tp"), world.local_rank, backend, "tensor"
    )


def _lists(layout: ParallelLayout, name: str) -> list[list[int]]:
    return [list(group) for group in layout.groups(name)]
