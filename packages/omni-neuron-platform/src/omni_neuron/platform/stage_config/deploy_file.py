"""A `StageConfig` as the deploy file that vLLM-Omni takes as `Omni(model=..., deploy_config=...)`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from omni_neuron.platform.registry import PipelineEntry, pipeline_entries
from omni_neuron.platform.stage_config.config import StageConfig, check_layout
from omni_neuron.platform.stage_config.devices import written_devices
from omni_neuron.platform.stage_config.key import STAGE
from omni_neuron.platform.stage_config.pipeline_names import pipeline_name
from omni_neuron.platform.stage_config.table import BY_NAME
from omni_neuron.runtime.errors import InputError

# Inside the engine's `additional_config`, the one block that it hands on unread: the size of the warm-up.
WARM_UP_KEY = "omni_neuron_warm_up"
WARM_UP_SIZE = {"height": 480, "width": 832, "num_frames": 81}
_NOT_WRITTEN = {"sequence_parallel_size", "stage_type", "stage_id", "skip_warmup", "devices", "pipeline"}


def to_deploy_dict(config: StageConfig, model_class_name: str) -> dict[str, Any]:
    """The configuration in vLLM-Omni's deploy form.

    Degrees go into the block `parallel_config`, which 0.29 and 0.30 both read; every file names its pipeline,
    because vLLM-Omni drops a file without one when the model's folder matches no pipeline.

    Args:
        model_class_name: the class in the checkpoint's model_index.json; the configuration's own goes first.

    Raises:
        InputError: settings contradict each other.
    """
    check_layout(config)
    architecture = config.get("model_class_name", model_class_name)
    stage: dict[str, Any] = {"stage_id": 0, "devices": written_devices(config.devices)}
    document: dict[str, Any] = {
        "pipeline": config.get("pipeline", pipeline_name(architecture)),
        "async_chunk": False,
        STAGE: [stage],
    }
    for name, value in config.values.items():
        if name not in _NOT_WRITTEN:
            _put(document, stage, BY_NAME[name].places.deploy[0], value)
    stage["model_class_name"] = architecture
    if not config.get("skip_warmup", True):
        size = {name: config.request_defaults.get(name, value) for name, value in WARM_UP_SIZE.items()}
        stage["additional_config"] = {WARM_UP_KEY: size}
    return document


def _put(document: dict[str, Any], stage: dict[str, Any], place: str, value: Any) -> None:
    *blocks, last = place.split(".")
    target = document
    if blocks and blocks[0] == STAGE:
        target, blocks = stage, blocks[1:]
    for block in blocks:
        target = target.setdefault(block, {})
    target[last] = value


def write_deploy_file(
    config: StageConfig,
    model_dir: str | Path,
    path: str | Path,
    entries: Iterable[PipelineEntry] | None = None,
) -> Path:
    """Write the deploy file for a checkpoint in the diffusers folder layout.

    `register_pipeline_configs` must have run in this process before an engine reads the file.

    Args:
        entries: the pipelines that may run; those of the installed model packages when None.

    Returns:
        `path`.

    Raises:
        InputError: the folder is no such checkpoint, no installed package serves its class, or settings
            contradict each other.
    """
    document = to_deploy_dict(config, class_of(Path(model_dir)))
    architecture = document[STAGE][0]["model_class_name"]
    known = sorted({entry.model_arch for entry in (pipeline_entries() if entries is None else entries)})
    if architecture not in known:
        where = (
            config.source
            if "model_class_name" in config.values
            else f"{Path(model_dir) / 'model_index.json'}"
        )
        raise InputError(
            f"model_class_name {architecture!r} of {where} has no pipeline for Neuron: it must be one of "
            f"{', '.join(known) or 'none, as no model package is installed'}; use such a checkpoint."
        )
    path = Path(path)
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def class_of(model_dir: Path) -> str:
    """The pipeline class that a checkpoint names.

    Raises:
        InputError: the folder has no readable model_index.json with a `_class_name`.
    """
    index = model_dir / "model_index.json"
    try:
        name = json.loads(index.read_text(encoding="utf-8"))["_class_name"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"model {model_dir} is not a checkpoint in the diffusers layout: model_index.json with a "
            f"_class_name cannot be read ({type(error).__name__}); give the folder that holds it."
        ) from error
    return str(name)
