"""Our pipelines in vLLM-Omni's table of topologies, without which it drops a deploy file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from omni_neuron.platform.registry import PipelineEntry, pipeline_entries
from omni_neuron.platform.stage_config.deferred import when_imported
from omni_neuron.platform.stage_config.pipeline_names import pipeline_name

if TYPE_CHECKING:
    from vllm_omni.config.stage_config import PipelineConfig

REGISTRY_MODULE = "vllm_omni.config.pipeline_registry"


def pipeline_config(model_arch: str) -> PipelineConfig:
    """One diffusion stage that makes a video, for folders whose model_index.json names `model_arch`."""
    from vllm_omni.config.stage_config import PipelineConfig, StageExecutionType, StagePipelineConfig

    return PipelineConfig(
        model_type=pipeline_name(model_arch),
        model_arch=model_arch,
        diffusers_class_name=model_arch,
        stages=(
            StagePipelineConfig(
                stage_id=0,
                model_stage="dit",
                execution_type=StageExecutionType.DIFFUSION,
                final_output=True,
                final_output_type="video",
                model_arch=model_arch,
            ),
        ),
    )


def register_pipeline_configs(entries: Iterable[PipelineEntry] | None = None) -> None:
    """Register a topology for every pipeline; those already there stay.

    The engine resolves its configuration in the process that creates `Omni`, before it loads general plugins,
    so this must run there first: `schedule_pipeline_configs` sees to it.

    Args:
        entries: the pipelines; those of the installed model packages when None.
    """
    from vllm_omni.config.pipeline_registry import OMNI_PIPELINES, register_pipeline

    for entry in pipeline_entries() if entries is None else entries:
        if pipeline_name(entry.model_arch) not in OMNI_PIPELINES:
            register_pipeline(pipeline_config(entry.model_arch))


def schedule_pipeline_configs() -> None:
    """Register as soon as vLLM-Omni's table exists.

    For the platform entry point, which runs in the middle of vLLM-Omni's own import, when the table cannot be
    imported yet.
    """
    when_imported(REGISTRY_MODULE, register_pipeline_configs)
