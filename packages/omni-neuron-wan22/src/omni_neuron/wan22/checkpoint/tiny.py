"""A Wan2.2 text-to-video checkpoint of a few megabytes with random weights.

It has the layout, the files and the tensor names of the published one, so that whatever runs on it runs on a
real one. Every tensor is away from its initial value, see :mod:`omni_neuron.wan22.checkpoint.recipes.values`.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from omni_neuron.wan22.checkpoint.cache import build_once, cache_root
from omni_neuron.wan22.checkpoint.recipes import configs
from omni_neuron.wan22.checkpoint.recipes.geometry import TinyGeometry
from omni_neuron.wan22.checkpoint.recipes.text_encoder import text_encoder_recipes
from omni_neuron.wan22.checkpoint.recipes.tokenizer import build_tokenizer, tokenizer_config
from omni_neuron.wan22.checkpoint.recipes.transformer import transformer_recipes
from omni_neuron.wan22.checkpoint.recipes.vae import vae_recipes
from omni_neuron.wan22.checkpoint.recipes.values import Recipe, draw

__all__ = ["TinyGeometry", "build_checkpoint", "tiny_checkpoint"]

DIFFUSERS_WEIGHTS = "diffusion_pytorch_model.safetensors"
TRANSFORMERS_WEIGHTS = "model.safetensors"


def tiny_checkpoint(geometry: TinyGeometry | None = None, root: Path | None = None) -> Path:
    """Folder of the checkpoint with this geometry, built on first use (seconds) and kept in the cache.

    The folder's name carries the geometry and the recipes, so a change of either makes another folder.

    Args:
        geometry: sizes and seed; the default geometry unless given.
        root: where checkpoints are kept; the cache folder unless given.

    Raises:
        SetupError: the cache cannot be written.
    """
    geometry = geometry or TinyGeometry()
    name = f"wan22-t2v-random-{_digest(geometry)}"
    folder = (root or cache_root()) / "checkpoints" / name
    return build_once(folder, lambda workshop: build_checkpoint(workshop, geometry))


def build_checkpoint(folder: Path, geometry: TinyGeometry) -> None:
    """Write every file of the checkpoint into an existing folder; the same bytes for the same geometry."""
    tokenizer = build_tokenizer()
    vocab_size = _round_up(tokenizer.get_vocab_size(), 64)
    experts = ["transformer", "transformer_2"] if geometry.two_experts else ["transformer"]
    for expert in experts:
        _write_json(folder / expert / "config.json", configs.transformer_config(geometry))
        _write_weights(folder / expert / DIFFUSERS_WEIGHTS, transformer_recipes(geometry), geometry.seed)
    _write_json(folder / "vae" / "config.json", configs.vae_config(geometry))
    _write_weights(folder / "vae" / DIFFUSERS_WEIGHTS, vae_recipes(geometry), geometry.seed)
    _write_json(folder / "text_encoder" / "config.json", configs.text_encoder_config(geometry, vocab_size))
    text_encoder = text_encoder_recipes(geometry, vocab_size)
    _write_weights(folder / "text_encoder" / TRANSFORMERS_WEIGHTS, text_encoder, geometry.seed)
    _write_json(folder / "tokenizer" / "tokenizer_config.json", tokenizer_config())
    tokenizer.save(str(folder / "tokenizer" / "tokenizer.json"))
    _write_json(folder / "scheduler" / "scheduler_config.json", configs.scheduler_config())
    _write_json(folder / "model_index.json", configs.model_index(geometry))


def _digest(geometry: TinyGeometry) -> str:
    digest = hashlib.sha256(json.dumps(asdict(geometry), sort_keys=True).encode())
    for source in [Path(__file__), *sorted((Path(__file__).parent / "recipes").glob("*.py"))]:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_weights(path: Path, tensors: dict[str, Recipe], seed: int) -> None:
    path.parent.mkdir(exist_ok=True)
    save_file(draw(tensors, f"{seed}/{path.parent.name}"), path, metadata={"format": "pt"})


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
