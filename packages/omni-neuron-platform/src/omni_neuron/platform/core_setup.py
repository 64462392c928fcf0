"""What a worker process does to its Neuron core before anything else touches it."""

from __future__ import annotations

import os
from typing import Any

import torch

from omni_neuron.runtime import envs
from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.runtime.errors import SetupError
from omni_neuron.runtime.mode import detect_mode


def prepare_core(worker: Any, local_rank: int) -> None:
    """Bind this process to its core; in CPU mode there is nothing to bind.

    Args:
        worker: the worker, for vllm-neuron's own steps where its class is a base.
        local_rank: index among the visible cores.

    Raises:
        SetupError: `NEURON_RT_VISIBLE_CORES` is set already, or there are fewer visible cores than ranks.
    """
    if not detect_mode().is_hardware:
        return
    if envs.rt_visible_cores() is not None:
        raise SetupError(
            f"{envs.rt_visible_cores.name} is set in the parent process: every worker sets its own core; "
            f"unset it, and choose cores with {envs.visible_devices.name}."
        )
    # Left from another stack, these make the first collective wait for a host that is not there.
    envs.library_path.unset()
    envs.rt_root_comm_id.unset()
    torch.set_num_threads(1)
    visible = envs.visible_devices() or tuple(range(get_adapter().device_count()))
    if local_rank >= len(visible):
        raise SetupError(
            f"local rank {local_rank} has no core: {len(visible)} are visible; "
            f"make {envs.visible_devices.name} as long as the number of ranks."
        )
    envs.rt_visible_cores.set(str(visible[local_rank]))
    os.environ["NEURON_RT_MAP_HBM"] = "1"
    if hasattr(worker, "_set_efa_affinity"):
        worker._set_efa_affinity(list(visible))
        worker._set_cpu_affinity()
    envs.rt_root_comm_id.unset()  # the import of Lite sets it again
