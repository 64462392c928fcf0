"""Geometries by name, from the data files beside this module, or from a checkpoint folder's config files."""

from __future__ import annotations

import difflib
import os
import tomllib
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from omni_neuron.distributed.planner.config_fields import MAX_LAYERS, ConfigFields, read_fields
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

    Raises InputError when it is neither, or when a config file lacks a field or holds a value out of bounds.
    """
    if name in known_models():
        return _from_table(name, tomllib.loads((_MODELS / f"{name}.toml").read_text()))
    folder = Path(name)
    if os.path.isfile(folder / "model_index.json"):  # false, too, for what no path can be
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
    index = read_fields(folder / "model_index.json")
    parts = (read_fields(folder / part / "config.json") for part in ("transformer", "vae", "text_encoder"))
    found = _build(folder.name, index, *parts)
    for known in map(load_model, known_models()):
        size = {name: getattr(known, name) for name in ("height", "width", "num_frames", "steps")}
        if replace(found, **size, name=known.name) == known:
            return replace(found, **size)
    return found


def _build(name: str, index: ConfigFields, dit: ConfigFields, vae: ConfigFields, text: ConfigFields) -> Model:
    heads, head_dim = dit.count("num_attention_heads"), dit.count("attention_head_dim")
    patch = dit.counts("patch_size", 3)
    multipliers = vae.counts("dim_mult")
    spatial_scale = vae.count("scale_factor_spatial", default=8)
    height, width = (720, 1280) if heads * head_dim >= 3072 else (480, 832)
    multiple = spatial_scale * patch[1]
    return Model(
        name=name,
        experts=2 if index.names_class("transformer_2") else 1,
        dit=DiT(
            layers=dit.count("num_layers", MAX_LAYERS),
            heads=heads,
            head_dim=head_dim,
            ffn=dit.count("ffn_dim"),
            in_channels=dit.count("in_channels"),
            out_channels=dit.count("out_channels"),
            patch=(patch[0], patch[1], patch[2]),
            text_dim=dit.count("text_dim"),
            freq_dim=dit.count("freq_dim"),
        ),
        vae=VAE(
            base=vae.count("base_dim"),
            decoder_base=vae.count("decoder_base_dim", default=vae.count("base_dim")),
            z_dim=vae.count("z_dim"),
            multipliers=multipliers,
            res_blocks=vae.count("num_res_blocks", MAX_LAYERS),
            temporal_downsample=vae.switches("temperal_downsample", len(multipliers) - 1),
            residual=vae.switch("is_residual"),
            image_channels=vae.count("in_channels", default=3),
            pixel_patch=vae.count("patch_size", default=1),
            temporal_scale=vae.count("scale_factor_temporal", default=4),
            spatial_scale=spatial_scale,
        ),
        text_encoder=TextEncoder(
            layers=text.count("num_layers", MAX_LAYERS),
            width=text.count("d_model"),
            heads=text.count("num_heads"),
            head_dim=text.count("d_kv"),
            ffn=text.count("d_ff"),
            vocabulary=text.count("vocab_size"),
            buckets=text.count("relative_attention_num_buckets"),
        ),
        height=height // multiple * multiple,
        width=width // multiple * multiple,
        num_frames=81,
        steps=40,
        image_condition=index.given("_class_name") == "WanImageToVideoPipeline",
        per_token_time=index.switch("expand_timesteps"),
    )
