"""A diffusers folder, read as a Wan2.2 text-to-video checkpoint."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.request import PATCH, VideoRules, check_boundary_ratio

TRANSFORMER = "WanTransformer3DModel"
# What each component of model_index.json may be; a tokenizer's class has had several names.
CLASSES = {
    "transformer": (TRANSFORMER,),
    "vae": ("AutoencoderKLWan",),
    "text_encoder": ("UMT5EncoderModel",),
    "tokenizer": ("T5TokenizerFast", "T5Tokenizer", "AutoTokenizer", "PreTrainedTokenizerFast"),
    "scheduler": ("UniPCMultistepScheduler",),
}
# One file of each group must exist in the component's folder.
FILES = {
    "transformer": (("config.json",), ("diffusion_pytorch_model.safetensors",)),
    "vae": (("config.json",), ("diffusion_pytorch_model.safetensors",)),
    "text_encoder": (("config.json",), ("model.safetensors",)),
    "tokenizer": (("tokenizer_config.json",), ("tokenizer.json", "spiece.model")),
    "scheduler": (("scheduler_config.json",),),
}
TEMPORAL_SCALE = 4
SPATIAL_SCALES = (8, 16)


@dataclass(frozen=True)
class WanCheckpoint:
    """A checkpoint whose parts exist and fit together; no weight was read.

    Attributes:
        folder: holds ``model_index.json`` and a folder for each component.
        experts: ``("transformer",)``, or ``("transformer", "transformer_2")`` for high and low noise.
        boundary_ratio: noise level at which the second expert takes over, None if not stated.
        rules: what it can generate.
    """

    folder: Path
    experts: tuple[str, ...]
    boundary_ratio: float | None
    rules: VideoRules


def read_checkpoint(folder: str | Path) -> WanCheckpoint:
    """Read and check ``model_index.json`` and the components' configurations.

    Raises:
        InputError: one sentence on the first thing that keeps the folder from being a Wan2.2 text-to-video
            checkpoint.
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise InputError(f"model is {str(folder)!r}, but there is no such folder; pass a diffusers one.")
    index = _read_json(folder / "model_index.json")
    _check_pipeline(folder, index)
    experts = _experts(index)
    for name, classes in CLASSES.items():
        _check_component(folder, index, name, classes, FILES[name])
    if len(experts) == 2:
        _check_component(folder, index, "transformer_2", CLASSES["transformer"], FILES["transformer"])
    return WanCheckpoint(folder, experts, _boundary(folder, index), _rules(folder, experts))


def _check_pipeline(folder: Path, index: Mapping[str, Any]) -> None:
    name = index.get("_class_name")
    if name != "WanPipeline":
        raise InputError(
            f"model_index.json of {folder} names the pipeline {name!r}, but only 'WanPipeline' exists here; "
            "choose a text-to-video checkpoint."
        )


def _experts(index: Mapping[str, Any]) -> tuple[str, ...]:
    second = index.get("transformer_2")
    return ("transformer",) if not second or second[1] is None else ("transformer", "transformer_2")


def _check_component(
    folder: Path,
    index: Mapping[str, Any],
    name: str,
    classes: tuple[str, ...],
    files: tuple[tuple[str, ...], ...],
) -> None:
    entry = index.get(name)
    if not isinstance(entry, list) or len(entry) != 2 or entry[1] is None:
        raise InputError(f"model_index.json of {folder} has no {name}, but a Wan checkpoint needs one.")
    if entry[1] not in classes:
        raise InputError(
            f"model_index.json of {folder} gives {name} the class {entry[1]!r}, but it must be "
            f"{' or '.join(map(repr, classes))}."
        )
    for alternatives in files:
        # A sharded file is known by its index.
        accepted = [variant for file in alternatives for variant in _with_index(file)]
        if not any((folder / name / file).is_file() for file in accepted):
            raise InputError(f"{folder / name} has no {' or '.join(alternatives)}; complete the checkpoint.")


def _with_index(file: str) -> tuple[str, ...]:
    return (file, f"{file}.index.json") if file.endswith(".safetensors") else (file,)


def _boundary(folder: Path, index: Mapping[str, Any]) -> float | None:
    value = index.get("boundary_ratio")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(
            f"{folder / 'model_index.json'}: boundary_ratio is {value!r}, but it must be a number."
        )
    check_boundary_ratio(value)
    return float(value)


def _rules(folder: Path, experts: tuple[str, ...]) -> VideoRules:
    vae = _read_json(folder / "vae" / "config.json")
    text_dim = _read_json(folder / "text_encoder" / "config.json").get("d_model", 512)
    channels = vae.get("z_dim", 16)
    for expert in experts:
        path = folder / expert / "config.json"
        config = _read_json(path)
        in_channels = config.get("in_channels", 16)
        _require(path, "in_channels", in_channels, channels, "the latent channels (z_dim) of the VAE")
        _require(path, "out_channels", config.get("out_channels") or in_channels, channels, "its in_channels")
        _require(path, "text_dim", config.get("text_dim", 4096), text_dim, "d_model of the text encoder")
        _require(path, "patch_size", config.get("patch_size", [1, 2, 2]), [1, PATCH, PATCH], "Wan's patches")
    return VideoRules(*_vae_scales(folder / "vae" / "config.json", vae), channels, len(experts) == 2)


def _vae_scales(path: Path, config: Mapping[str, Any]) -> tuple[int, int]:
    """Spatial and temporal scale: declared, and equal to what the layers do."""
    temporal = config.get("scale_factor_temporal") or TEMPORAL_SCALE
    spatial = config.get("scale_factor_spatial") or SPATIAL_SCALES[0]
    halvings = len(config.get("dim_mult", [1, 2, 4, 4])) - 1
    built_temporal = 2 ** sum(config.get("temperal_downsample", [False, True, True]))
    _require(path, "scale_factor_temporal", temporal, built_temporal, "what temperal_downsample does")
    _require(path, "scale_factor_temporal", temporal, TEMPORAL_SCALE, "Wan's four frames in a latent frame")
    built_spatial = 2**halvings * (config.get("patch_size") or 1)
    _require(path, "scale_factor_spatial", spatial, built_spatial, "what dim_mult and patch_size do")
    if spatial not in SPATIAL_SCALES:
        raise InputError(f"{path}: scale_factor_spatial is {spatial}, but Wan's VAEs have 8 or 16.")
    return spatial, temporal


def _require(path: Path, field: str, value: Any, expected: Any, reason: str) -> None:
    if value != expected:
        raise InputError(f"{path}: {field} is {value}, but it must be {expected}, {reason}.")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} is missing, so this is no checkpoint in diffusers' layout.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a {type(content).__name__}, but it must be a JSON object.")
    return content
