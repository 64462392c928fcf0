"""A `StageConfig` as the deploy file that vLLM-Omni takes as `Omni(model=..., deploy_config=...)`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from omni_neuron.platform.registry import PipelineEntry, pipeline_entries
from omni_neuron.platform.stage_config.config import StageConfig, check_layout, written_indices
from omni_neuron.platform.stage_config.key import STAGE
from omni_neuron.platform.stage_config.pipeline_names import pipeline_name
from omni_neuron.platform.stage_config.table import BY_NAME
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.regular_file import regular_text

# Inside the engine's `additional_config`, the one block that it hands on unread: the size of the warm-up.
WARM_UP_KEY = "omni_neuron_warm_up"
SIZE = ("height", "width", "num_frames")


def to_deploy_dict(config: StageConfig, entry: PipelineEntry) -> dict[str, Any]:
    """The configuration in vLLM-Omni's deploy form.

    Degrees go into the block `parallel_config`, which 0.29 and 0.30 both read; every file names its pipeline,
    because vLLM-Omni drops a file without one when the model's folder matches no pipeline.

    Args:
        entry: the pipeline that is to run.

    Raises:
        InputError: settings contradict each other, or a warm-up has no size.
    """
    check_layout(config)
    stage: dict[str, Any] = {"stage_id": 0}
    document: dict[str, Any] = {
        "pipeline": pipeline_name(entry.model_arch),
        "async_chunk": False,
        STAGE: [stage],
    }
    values = {**config.values, "model_class_name": entry.model_arch}
    values["devices"] = config.devices
    if not values.pop("skip_warmup", True):
        stage["additional_config"] = {WARM_UP_KEY: _warm_up_size(config, entry)}
    for name, value in values.items():
        if not BY_NAME[name].for_reader:
            _put(document, stage, BY_NAME[name].places.deploy[0], value)
    return document


def _warm_up_size(config: StageConfig, entry: PipelineEntry) -> dict[str, int]:
    known = {**entry.default_size, **config.request_defaults}
    missing = [name for name in SIZE if name not in known]
    if missing:
        raise InputError(
            f"skip_warmup of {config.source} is false, but {entry.model_arch} has no default for "
            f"{' and '.join(missing)}: set them in default_sampling_params, or set skip_warmup to true."
        )
    return {name: known[name] for name in SIZE}


def _put(document: dict[str, Any], stage: dict[str, Any], place: str, value: Any) -> None:
    *blocks, last = place.split(".")
    target = document
    if blocks and blocks[0] == STAGE:
        target, blocks = stage, blocks[1:]
    for block in blocks:
        target = target.setdefault(block, {})
    target[last] = written_indices(value) if isinstance(value, tuple) else value


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
    architecture = config.get("model_class_name") or class_of(Path(model_dir))
    known = {entry.model_arch: entry for entry in (pipeline_entries() if entries is None else entries)}
    if architecture not in known:
        where = config.source if "model_class_name" in config.values else Path(model_dir) / "model_index.json"
        raise InputError(
            f"model_class_name {architecture!r} of {where} has no pipeline for Neuron: it must be one of "
            f"{', '.join(sorted(known)) or 'none, as no model package is installed'}; use such a checkpoint."
        )
    document = to_deploy_dict(config, known[architecture])
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
        name = json.loads(regular_text(index))["_class_name"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"model {model_dir} is not a checkpoint in the diffusers layout: model_index.json with a "
            f"_class_name cannot be read ({type(error).__name__}); give the folder that holds it."
        ) from error
    return str(name)
