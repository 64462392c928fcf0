"""The classes of vllm-neuron that stand under ours, where that package is installed for real."""

from __future__ import annotations

from typing import Any

from omni_neuron.platform.vllm_platform import DEVICE_TYPE, NeuronBasePlatform
from omni_neuron.runtime.wheels import inspect_wheel


def _has_vllm_neuron() -> bool:
    return DEVICE_TYPE == "neuron" and inspect_wheel("vllm-neuron").is_real


def device_platform() -> type[Any]:
    """vllm-neuron's platform over our base, which answers what vllm-neuron leaves to vLLM's defaults."""
    if not _has_vllm_neuron():
        return NeuronBasePlatform
    from vllm_neuron.vllm.platform import NeuronPlatform

    return type("DevicePlatform", (NeuronPlatform, NeuronBasePlatform), {})


def device_worker() -> type[Any]:
    """vllm-neuron's worker, for its preparation of a core; an empty class elsewhere."""
    if not _has_vllm_neuron():
        return type("NoDeviceWorker", (), {})
    from vllm_neuron.vllm.worker.neuron_worker import NeuronWorker

    base: type[Any] = NeuronWorker
    return base
