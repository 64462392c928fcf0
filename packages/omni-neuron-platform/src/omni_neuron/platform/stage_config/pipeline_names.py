"""How our pipelines are called in vLLM-Omni's table of topologies."""

from __future__ import annotations

from omni_neuron.platform.registry import pipeline_entries
from omni_neuron.runtime.value_kinds import Kind

PREFIX = "omni_neuron_"


def pipeline_name(model_arch: str) -> str:
    """The name under which `register_pipeline_configs` registers an architecture."""
    return f"{PREFIX}{model_arch}"


def _parse(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    ours = value.startswith(PREFIX) and value.removeprefix(PREFIX).isidentifier()
    if not ours and not any(value in entry.stock_pipelines for entry in pipeline_entries()):
        raise ValueError(value)
    return value


PIPELINE = Kind(
    f"{PREFIX} and an architecture, or what vLLM-Omni calls the same pipeline (one diffusion stage)", _parse
)
