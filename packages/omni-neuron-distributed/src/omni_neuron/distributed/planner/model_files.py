"""Geometries by name, from the data files beside this module, or from a checkpoint folder's config files."""

from __future__ import annotations

import difflib
import json
import tomllib
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from omni_neuron.distributed.planner.geometry import VAE, DiT, Model, TextEncoder
from omni_neuron.runtime.errors import InputError

_MODELS = files("omni_neuron.distributed.planner") / "models"


def known_models() -> list[str]:
    """The names that have a data file, in alphabetical order."""
    return sorted(
        entry.name.removesuffix(".toml") for entry in _MODELS.iterdir() if entry.name.endswith(".toml")
    )


def load_model(name: str) -> Model:
    """The geometry of a known model or of a folder that holds ``model_index.json``.

    Config files do not state the size of a clip. A folder has that of the known model with its geometry, and
    else 720p or, for a narrow DiT, 480p, each rounded down to what DiT tokens tile.

    Raises InputError when it is neither, or when a config file lacks a field.
    """
    if name in known_models():
        return _from_table(name, tomllib.loads((_MODELS / f"{name}.toml").read_text()))
    folder = Path(name)
    if (folder / "model_index.json").is_file():
        return _from_folder(folder)
    near = difflib.get_close_matches(name, known_models(), n=1, cutoff=0.0)
    raise InputError(
        f"model={name!r} must be one of {', '.join(known_models())} or a folder with model_index.json: "
        f"the nearest name is {near[0]}."
    )


def _from_table(name: str, table: dict[str, Any]) -> Model:
    parts = {"dit", "vae", "text_encoder"}
    return Model(
        name=name,
        dit=DiT(**table["dit"]),
        vae=VAE(**table["vae"]),
        text_encoder=TextEncoder(**table["text_encoder"]),
        **{key: value for key, value in table.items() if key not in parts},
    )


def _from_folder(folder: Path) -> Model:
    index = _read(folder / "model_index.json")
    parts = (_read(folder / part / "config.json") for part in ("transformer", "vae", "text_encoder"))
    try:
        found = _build(folder.name, index, *parts)
    except KeyError as error:
        raise InputError(
            f"model={str(folder)!r} must be a Wan checkpoint, but its model_index.json and config.json files "
            f"lack the field {error}: fetch the checkpoint again, or name one of {', '.join(known_models())}."
        ) from None
    for known in map(load_model, known_models()):
        size = {name: getattr(known, name) for name in ("height", "width", "num_frames", "steps")}
        if replace(found, **size, name=known.name) == known:
            return replace(found, **size)
    return found


def _build(
    name: str, index: dict[str, Any], dit: dict[str, Any], vae: dict[str, Any], text: dict[str, Any]
) -> Model:
    residual = bool(vae.get("is_residual", False))
    height, width = (
        (720, 1280) if dit["num_attention_heads"] * dit["attention_head_dim"] >= 3072 else (480, 832)
    )
    multiple = vae.get("scale_factor_spatial", 8) * dit["patch_size"][1]
    second = index.get("transformer_2") or [None, None]
    return Model(
        name=name,
        experts=2 if second[0] else 1,
        dit=DiT(
            layers=dit["num_layers"],
            heads=dit["num_attention_heads"],
            head_dim=dit["attention_head_dim"],
            ffn=dit["ffn_dim"],
            in_channels=dit["in_channels"],
            out_channels=dit["out_channels"],
            patch=tuple(dit["patch_size"]),
            text_dim=dit["text_dim"],
            freq_dim=dit["freq_dim"],
        ),
        vae=VAE(
            base=vae["base_dim"],
            decoder_base=vae.get("decoder_base_dim") or vae["base_dim"],
            z_dim=vae["z_dim"],
            multipliers=tuple(vae["dim_mult"]),
            res_blocks=vae["num_res_blocks"],
            temporal_downsample=tuple(vae["temperal_downsample"]),
            residual=residual,
            image_channels=vae.get("in_channels", 3),
            pixel_patch=vae.get("patch_size") or 1,
            temporal_scale=vae.get("scale_factor_temporal", 4),
            spatial_scale=vae.get("scale_factor_spatial", 8),
        ),
        text_encoder=TextEncoder(
            layers=text["num_layers"],
            width=text["d_model"],
            heads=text["num_heads"],
            head_dim=text["d_kv"],
            ffn=text["d_ff"],
            vocabulary=text["vocab_size"],
            buckets=text["relative_attention_num_buckets"],
        ),
        height=height // multiple * multiple,
        width=width // multiple * multiple,
        num_frames=81,
        steps=40,
        image_condition=index["_class_name"] == "WanImageToVideoPipeline",
        per_token_time=bool(index.get("expand_timesteps", False)),
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: must be a readable JSON file ({error}).") from None
    if not isinstance(content, dict):
        raise InputError(f"{file}: must hold a JSON object.")
    return content
