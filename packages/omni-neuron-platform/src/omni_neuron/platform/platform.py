"""The platform as vLLM-Omni's diffusion engine sees it."""

from __future__ import annotations

from typing import Any

import torch
from vllm_omni.platforms.interface import OmniPlatform, OmniPlatformEnum

from omni_neuron.platform.attention_choice import backend_path
from omni_neuron.platform.device_bases import device_platform
from omni_neuron.platform.visible_devices import list_visible_devices
from omni_neuron.platform.vllm_platform import DEVICE_TYPE
from omni_neuron.runtime import envs
from omni_neuron.runtime.adapter import get_adapter

CPU_MODE_RANKS = 64  # logical cores of a trn2.48xlarge

_DevicePlatform: Any = device_platform()


class NeuronOmniPlatform(OmniPlatform, _DevicePlatform):
    """One Trainium core per worker, or one CPU process that stands in for it."""

    _omni_enum = OmniPlatformEnum.OOT
    device_name = DEVICE_TYPE
    device_type = DEVICE_TYPE
    device_control_env_var = envs.visible_devices.name

    # What the engine should run.

    @classmethod
    def get_diffusion_worker_cls(cls) -> str:
        return "omni_neuron.platform.worker.NeuronDiffusionWorker"

    @classmethod
    def get_diffusion_model_runner_cls(cls) -> str:
        return "omni_neuron.platform.model_runner.NeuronDiffusionModelRunner"

    @classmethod
    def get_diffusion_attn_backend_cls(
        cls, selected_backend: str | None, head_size: int, allow_trtllm_default: bool = False
    ) -> str:
        return backend_path(selected_backend, head_size)

    @classmethod
    def get_default_stage_config_path(cls) -> str:
        return "vllm_omni/deploy"

    @classmethod
    def get_omni_ar_worker_cls(cls) -> str:
        raise NotImplementedError(
            "omni-neuron runs diffusion stages only: autoregressive stages need another platform."
        )

    @classmethod
    def get_omni_generation_worker_cls(cls) -> str:
        raise NotImplementedError(
            "omni-neuron runs diffusion stages only: generation stages need another platform."
        )

    # How it is compiled.

    @classmethod
    def supports_torch_inductor(cls) -> bool:
        return False

    @classmethod
    def get_compile_backend(cls) -> str | None:
        """Name of the torch.compile backend, None in CPU mode, where graphs run eagerly."""
        return get_adapter().compile_backend()

    @classmethod
    def supports_float64(cls) -> bool:
        return bool(cls.device_type == "cpu")

    @classmethod
    def supports_cpu_offload(cls) -> bool:
        return False

    # The device.

    @property
    def dist_backend(self) -> str:
        """Name for `torch.distributed.init_process_group`."""
        return get_adapter().process_group_backend()

    @classmethod
    def set_device_control_env_var(cls, devices: str | int | None) -> None:
        """Choose the cores of the processes that start next, one by one: the engine reads no ranges."""
        super().set_device_control_env_var(devices)
        list_visible_devices()

    @classmethod
    def get_torch_device(cls, local_rank: int | None = None) -> torch.device:
        """The one device of a worker; its index is 0 because a worker sees one core."""
        return torch.device("cpu") if cls.device_type == "cpu" else torch.device(cls.device_type, 0)

    @classmethod
    def get_device_count(cls) -> int:
        """Logical cores that the engine may give to ranks; in CPU mode as many as a trn2 host has."""
        visible = envs.visible_devices()
        if visible is not None:
            return len(visible)
        return CPU_MODE_RANKS if cls.device_type == "cpu" else get_adapter().logical_core_count()

    @classmethod
    def get_device_version(cls) -> str | None:
        return None if cls.device_type == "cpu" else get_adapter().platform_target()

    @classmethod
    def is_available(cls) -> bool:
        return True

    @classmethod
    def is_initialized(cls) -> bool:
        return False

    @classmethod
    def current_device(cls) -> int:
        return 0

    @classmethod
    def synchronize(cls) -> None:
        get_adapter().synchronize()

    # Memory. A Neuron device keeps no allocator statistics: the budget is made before the run, by hand.

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        return get_adapter().hbm_bytes()

    @classmethod
    def get_device_memory(cls, device: torch.device | None = None) -> tuple[int, int]:
        total = cls.get_device_total_memory()
        return total, total

    @classmethod
    def get_free_memory(cls, device: torch.device | None = None) -> int:
        return cls.get_device_total_memory()

    @classmethod
    def empty_cache(cls) -> None:
        """Do nothing: there is no cache of device memory to empty."""

    @classmethod
    def reset_peak_memory_stats(cls, device: torch.device | None = None) -> None:
        """Do nothing: there are no statistics to reset."""

    @classmethod
    def max_memory_reserved(cls, device: torch.device | None = None) -> int:
        return 0

    @classmethod
    def max_memory_allocated(cls, device: torch.device | None = None) -> int:
        return 0
