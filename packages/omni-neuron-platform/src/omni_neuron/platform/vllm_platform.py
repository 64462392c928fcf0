"""The platform as vLLM itself sees it, where vllm-neuron is not installed.

vLLM resolves its own platform separately from vLLM-Omni. On a Trainium host vllm-neuron answers; in CPU mode
this class does, and the same class is the second base of `NeuronOmniPlatform`, which so inherits one set of
answers about the device from whichever of the two is there.
"""

from __future__ import annotations

import psutil
import torch
from vllm.platforms.interface import Platform, PlatformEnum

from omni_neuron.runtime import envs
from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.runtime.mode import detect_mode

DEVICE_TYPE = "neuron" if detect_mode().is_hardware else "cpu"


class NeuronBasePlatform(Platform):
    """A Neuron device, or the CPU that stands in for it, described to vLLM."""

    _enum = PlatformEnum.OOT
    device_name = DEVICE_TYPE
    device_type = DEVICE_TYPE
    dispatch_key = "CPU" if DEVICE_TYPE == "cpu" else "PrivateUse1"
    ray_device_key = "neuron_cores"
    device_control_env_var = envs.visible_devices.name
    simple_compile_backend = "eager"

    @property
    def dist_backend(self) -> str:
        """Name for `torch.distributed.init_process_group`."""
        return get_adapter().process_group_backend()

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        return f"{cls.device_type}:{device_id}"

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        """Bytes of one logical core's HBM, or of the host's memory in CPU mode."""
        return get_adapter().hbm_bytes()

    @classmethod
    def get_current_memory_usage(cls, device: torch.types.Device | None = None) -> float:
        """Bytes resident in this process; a Neuron device keeps no allocator statistics to ask for."""
        return float(psutil.Process().memory_info().rss)

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        """Do nothing: a worker sees exactly one core."""

    @classmethod
    def manual_seed_all(cls, seed: int) -> None:
        torch.manual_seed(seed)

    @classmethod
    def is_pin_memory_available(cls) -> bool:
        return False

    @classmethod
    def import_kernels(cls) -> None:
        """Do nothing: vLLM's compiled kernels are for other devices."""
