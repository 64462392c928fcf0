"""The entry points by which vLLM and vLLM-Omni find the Neuron platform.

All three are called in every process of the engine, some of them several times.
"""

from __future__ import annotations

import logging

from omni_neuron.platform.engine_log import silence_other_devices
from omni_neuron.platform.envs import humming_no_build, request_timeout
from omni_neuron.platform.stage_config.pipeline_configs import schedule_pipeline_configs
from omni_neuron.platform.visible_devices import list_visible_devices
from omni_neuron.runtime import envs
from omni_neuron.runtime.diagnosis.check import Status
from omni_neuron.runtime.diagnosis.packages import check_engine
from omni_neuron.runtime.errors import SetupError
from omni_neuron.runtime.mode import detect_mode
from omni_neuron.runtime.wheels import inspect_wheel

logger = logging.getLogger(__name__)

A_DAY_S = "86400"


def neuron_omni_platform_plugin() -> str | None:
    """Dotted path of the platform for vLLM-Omni, or None where it should stay as it was."""
    mode = detect_mode()
    if not mode.is_active:
        logger.warning("omni-neuron is installed but inactive: %s", mode.reason)
        return None
    if mode.is_hardware and not envs.backend.is_set():
        envs.backend.set("neuron_native")  # SDK 2.32 reads unset as the XLA route
    if not request_timeout.is_set():
        request_timeout.set(A_DAY_S)  # read when the executor is imported, which comes after this
    list_visible_devices()
    schedule_pipeline_configs()
    return "omni_neuron.platform.platform.NeuronOmniPlatform"


def vllm_platform_plugin() -> str | None:
    """Dotted path of the platform for vLLM, or None where vllm-neuron brings its own."""
    mode = detect_mode()
    if mode.is_active:
        silence_other_devices()
    if mode.is_active and not humming_no_build.is_set():
        humming_no_build.set("1")  # two more interpreters with torch for every process of the engine
    if not mode.is_active or (mode.is_hardware and inspect_wheel("vllm-neuron").is_real):
        return None
    return "omni_neuron.platform.vllm_platform.NeuronBasePlatform"


def register_neuron_pipelines() -> None:
    """Register the pipelines of the installed model packages, and what the engine lacks for this platform.

    Raises:
        SetupError: vllm and vllm-omni do not belong together, or are outside the supported range.
        InputError: an environment variable holds what it must not.

    vLLM-Omni swallows errors of platform detection, so the checks stand here, where they are heard.
    """
    if not detect_mode().is_active:
        return
    list_visible_devices()
    engine = check_engine()
    if engine.status is Status.FAIL:
        raise SetupError(f"{engine.finding}: {engine.remedy}.")

    from vllm_omni.diffusion.registry import register_diffusion_model

    from omni_neuron.platform.processes.executor import install_executor
    from omni_neuron.platform.registry import pipeline_entries

    for entry in pipeline_entries():
        register_diffusion_model(
            entry.model_arch, entry.module, entry.class_name, entry.pre_process, entry.post_process
        )
    install_executor()
