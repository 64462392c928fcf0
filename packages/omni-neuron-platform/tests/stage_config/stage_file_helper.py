"""Stage files for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from omni_neuron.platform.stage_config import StageConfig, read_stage_config
from omni_neuron.runtime.errors import InputError

Write = Callable[[Any], Path]


def deploy(stage: dict[str, Any] | None = None, **shared: Any) -> dict[str, Any]:
    return {**shared, "stages": [{"stage_id": 0, **(stage or {})}]}


def legacy(engine_args: dict[str, Any] | None = None, **stage: Any) -> dict[str, Any]:
    return {"stage_args": [{"stage_id": 0, "engine_args": engine_args or {}, **stage}]}


def at(place: str, value: object) -> dict[str, Any]:
    """A document of one stage with a single setting, whose place is that of the table of keys."""
    first, *rest = place.split(".")
    if not rest:
        return deploy(**{first: value})
    document: dict[str, Any] = {first: [{"stage_id": 0}]}
    target = document[first][0]
    for block in rest[:-1]:
        target = target.setdefault(block, {})
    target[rest[-1]] = value
    return document


SAMPLES = {
    "model_config.ring_attention": False,
    "model_config.placement": "0",
    "pipeline": "omni_neuron_WanPipeline",
    "stage_id": 0,
    "stage_type": "diffusion",
    "model_stage": "dit",
    "final_output": True,
    "final_output_type": "video",
    "process": True,
    "devices": "0",
    "env": {"A": "b"},
    "dtype": "float32",
    "distributed_executor_backend": "mp",
    "trust_remote_code": True,
    "model_class_name": "WanPipeline",
    "boundary_ratio": 0.9,
    "enforce_eager": True,
    "skip_warmup": True,
    "diffusion_load_format": "dummy",
    "worker_extension_cls": "a.B",
    "custom_pipeline_args.pipeline_class": "a.B",
    "model_config.tp_reduce_dtype": "bfloat16",
    "diffusion_attention_config.default": "TORCH_SDPA",
    "diffusion_attention_config.per_role": {"cross": "TORCH_SDPA"},
}


def sample_of(name: str) -> Any:
    """A value of a key as a file writes it."""
    return SAMPLES.get(name, 1)


class StageFiles:
    """Reads documents through a file, as the command does."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "stage.yaml"

    def read(self, document: object) -> StageConfig:
        text = document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False)
        self.path.write_text(text)
        return read_stage_config(self.path)

    def refusal(self, document: object) -> str:
        with pytest.raises(InputError) as refused:
            self.read(document)
        message = str(refused.value)
        assert str(self.path) in message
        assert message.endswith((".", "?"))
        return message
