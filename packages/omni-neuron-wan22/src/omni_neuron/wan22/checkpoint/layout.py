"""A diffusers folder, read as a Wan2.2 text-to-video checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.config_file import read_json_object
from omni_neuron.wan22.models.umt5_config import UMT5Config
from omni_neuron.wan22.models.vae_config import WanVAEConfig
from omni_neuron.wan22.request import PATCH, VideoRules, check_boundary_ratio
from omni_neuron.wan22.user_path import expanded

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
    folder = expanded("model", folder)
    try:
        found = folder.is_dir()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"model is {str(folder)!r}, but it cannot be read: {reason}.") from None
    if not found:
        raise InputError(f"model is {str(folder)!r}, but there is no such folder; pass a diffusers one.")
    index = read_json_object(folder / "model_index.json")
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
    absent = not second or (isinstance(second, list) and second[1:] == [None])
    return ("transformer",) if absent else ("transformer", "transformer_2")


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
    vae_path = folder / "vae" / "config.json"
    vae = WanVAEConfig.from_json_file(vae_path)
    text_dim = UMT5Config.from_json_file(folder / "text_encoder" / "config.json").d_model
    positions = []
    for expert in experts:
        path = folder / expert / "config.json"
        config = WanConfig.from_json_file(path)
        channels = "the latent channels (z_dim) of the VAE"
        _require(path, "in_channels", config.in_channels, vae.z_dim, channels)
        _require(path, "out_channels", config.out_channels, vae.z_dim, channels)
        _require(path, "text_dim", config.text_dim, text_dim, "d_model of the text encoder")
        _require(path, "patch_size", list(config.patch_size), [1, PATCH, PATCH], "Wan's patches")
        positions.append(config.rope_max_seq_len)
    temporal, spatial = vae.scale_factor_temporal, vae.scale_factor_spatial
    _require(vae_path, "scale_factor_temporal", temporal, TEMPORAL_SCALE, "Wan's frames in a latent frame")
    if spatial not in SPATIAL_SCALES:
        raise InputError(f"{vae_path}: scale_factor_spatial is {spatial}, but Wan's VAEs have 8 or 16.")
    return VideoRules(spatial, temporal, vae.z_dim, len(experts) == 2, min(positions))


def _require(path: Path, field: str, value: Any, expected: Any, reason: str) -> None:
    if value != expected:
        raise InputError(f"{path}: {field} is {value}, but it must be {expected}, {reason}.")
