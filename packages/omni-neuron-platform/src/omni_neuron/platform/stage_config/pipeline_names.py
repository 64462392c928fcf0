"""How our pipelines are called in vLLM-Omni's table of topologies."""

from __future__ import annotations

from omni_neuron.platform.stage_config.values import Kind

PREFIX = "omni_neuron_"
# One diffusion stage as well, so it serves our class of the same architecture.
STOCK_WAN = "wan2_2_ti2v"


def pipeline_name(model_arch: str) -> str:
    """The name under which `register_pipeline_configs` registers an architecture."""
    return f"{PREFIX}{model_arch}"


def _read(value: object) -> object:
    if not isinstance(value, str) or not (value == STOCK_WAN or value.removeprefix(PREFIX).isidentifier()):
        raise ValueError(value)
    if value != STOCK_WAN and not value.startswith(PREFIX):
        raise ValueError(value)
    return value


PIPELINE = Kind(f"{STOCK_WAN}, or {PREFIX} and an architecture (one diffusion stage)", _read)
