"""One worker: one Trainium core, or one CPU process that stands in for it."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from vllm_omni.diffusion.distributed.parallel_state import get_world_group
from vllm_omni.diffusion.worker.diffusion_worker import DiffusionWorker

from omni_neuron.platform.config_check import check_config
from omni_neuron.platform.device_bases import device_worker
from omni_neuron.platform.lora import NoLoRAManager
from omni_neuron.platform.parallel import place_groups
from omni_neuron.platform.processes.core_setup import announce_sizes, prepare_core
from omni_neuron.platform.processes.output_thread import install_stream_free_output
from omni_neuron.platform.processes.startup import reported_failure
from omni_neuron.runtime.memory_peak import AnonymousMemoryPeak

_DeviceWorker: Any = device_worker()


class NeuronDiffusionWorker(DiffusionWorker, _DeviceWorker):
    """vLLM-Omni's diffusion worker on a Neuron core."""

    def __init__(self, local_rank: int, rank: int, od_config: Any, skip_load_model: bool = False) -> None:
        with reported_failure(od_config, rank):
            check_config(od_config)
            install_stream_free_output()
            self._memory_peak = AnonymousMemoryPeak()
            super().__init__(local_rank, rank, od_config, skip_load_model)

    def init_device(self) -> None:
        """Prepare the core, then the distributed environment and groups, then their replica groups.

        The device's own preparation comes first (visible core, bootstrap variables, the Lite import), because
        the runtime reads it once.
        """
        prepare_core(self.od_config.num_gpus, self.local_rank)
        super().init_device()
        place_groups(self.od_config)

    @property
    def vllm_config(self) -> Any:
        """vLLM's configuration; its sizes are completed as soon as the base class has made it."""
        return self._vllm_config

    @vllm_config.setter
    def vllm_config(self, config: Any) -> None:
        self._vllm_config = config
        if config is not None:
            announce_sizes(self, config)

    def init_lora_manager(self) -> None:
        """Install a manager that refuses requests which bring an adapter."""
        self.lora_manager = NoLoRAManager()

    def rank_reports(self) -> list[dict[str, Any]]:
        """One report per global rank about the last request, gathered over the host's group.

        Returns:
            dictionaries with `latents_sha256` (of the contiguous fp32 latents, None before the first
            request); anonymous resident memory as `peak_rss_anon_mib`, its peak since the worker started, and
            `load_rise_mib`, its rise while the weights were read; `weights_mib`, what they take.
        """
        pipeline = self.model_runner.pipeline
        weights = () if pipeline is None else pipeline.parameters()
        report = {
            "latents_sha256": getattr(pipeline, "latents_sha256", None),
            "peak_rss_anon_mib": self._memory_peak.mib(),
            "load_rise_mib": getattr(pipeline, "load_rise_mib", None),
            "weights_mib": sum(parameter.nbytes for parameter in weights) / 2**20,
        }
        if not dist.is_initialized() or dist.get_world_size() == 1:
            return [report]
        reports: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(reports, report, group=get_world_group().cpu_group)
        return reports

    def sleep(self, level: int = 1) -> int:
        raise NotImplementedError(
            "sleep is not supported on Neuron: device memory belongs to loaded graphs and cannot be released "
            "without unloading them; shut the engine down instead."
        )

    def wake_up(self, tags: list[str] | None = None) -> bool:
        raise NotImplementedError(
            "wake_up is not supported on Neuron, because sleep is not; start a new engine instead."
        )

    def shutdown(self) -> None:
        self._memory_peak.stop()
        super().shutdown()
