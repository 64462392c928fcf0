"""What a worker process does to its Neuron core before its process groups exist.

The order is that of the published plugin on the native route: one thread, the core and the variables of the
runtime, the device library, the sizes of the job, and then the distributed environment.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm_omni.platforms import current_omni_platform

from omni_neuron.platform import envs as platform_envs
from omni_neuron.runtime import envs
from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.runtime.errors import SetupError
from omni_neuron.runtime.mode import detect_mode


def prepare_core(world_size: int, local_rank: int) -> None:
    """Bind this process to its core and load the device library; in CPU mode there is neither.

    Args:
        world_size: ranks of the job, all on this host.
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
    visible = envs.visible_devices() or tuple(range(world_size))
    if len(visible) < world_size:
        raise SetupError(
            f"{envs.visible_devices.name} lists {len(visible)} cores, but the job has {world_size} ranks; "
            "list one core for each."
        )
    torch.set_num_threads(1)
    if hasattr(current_omni_platform, "set_device_count"):
        current_omni_platform.set_device_count(len(visible))
    envs.rt_visible_cores.set(str(visible[local_rank]))
    platform_envs.rt_map_hbm.set("1")
    _forget_other_stacks()
    adapter = get_adapter()
    adapter.compile_backend()  # imports the library, which registers device, backend and process group
    adapter.restore_gelu()  # that import replaces `F.gelu` by a builtin, which cannot be traced
    _forget_other_stacks()


def _forget_other_stacks() -> None:
    # Left by another stack, or set by the library's own import, these make the first collective wait for a
    # host that is not there.
    envs.library_path.unset()
    envs.rt_root_comm_id.unset()


def announce_sizes(worker: Any, vllm_config: Any) -> None:
    """Tell vLLM's configuration, and vllm-neuron's worker where it is a base, how many ranks there are.

    vLLM-Omni fills in the tensor-parallel degree only, but vllm-neuron decides by the whole world which ranks
    share a host.
    """
    config = vllm_config.parallel_config
    config.world_size = worker.od_config.num_gpus // config.data_parallel_size
    worker.parallel_config = config
    if hasattr(worker, "_patch_in_same_node_as_function"):
        worker._patch_in_same_node_as_function()
