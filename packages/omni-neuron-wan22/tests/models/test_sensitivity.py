"""Every part of the models moves the final latents: what a request would not miss, no comparison can test.

A part is replaced by the value that training starts from; code that forgets it would give the same latents
before and after. The loop itself is held to diffusers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from model_loop import ModelLoop
from reference_run import FP32_BAR, relative_l2, run_reference
from safetensors.torch import load_file
from video_cases import BASE, BOUNDARY, GUIDANCE, ODD_LENGTH, STEPS

from omni_neuron.wan22.checkpoint.tiny import tiny_checkpoint

# Design section 4: each part moves the final latents by as much, three hundred times what level 3 allows.
LEAST = 1e-3
COMPONENTS = ("transformer", "transformer_2", "text_encoder")
NORMS = ("norm_q.weight", "norm_k.weight", "norm2.weight", "layer_norm.weight")
TABLES = ("relative_attention_bias.weight", "embed_tokens.weight", "scale_shift_table")
COMPARED = [BASE, *GUIDANCE, *STEPS[:2], ODD_LENGTH, BOUNDARY]


@pytest.fixture(scope="module")
def loop() -> ModelLoop:
    return ModelLoop(tiny_checkpoint())


@pytest.fixture(scope="module")
def embeddings(loop: ModelLoop) -> tuple[torch.Tensor, torch.Tensor]:
    return loop.encode(BASE.prompt), loop.encode(BASE.negative_prompt)


@pytest.fixture(scope="module")
def base(loop: ModelLoop) -> torch.Tensor:
    return loop.latents(BASE)


def initial_value(key: str) -> float | None:
    """What a tensor is before training; None for weight matrices, which start at random."""
    if key.endswith(NORMS):
        return 1.0
    return 0.0 if key.endswith((".bias", *TABLES)) else None


@contextmanager
def replaced(tensor: torch.Tensor, value: float) -> Iterator[None]:
    kept = tensor.clone()
    tensor.fill_(value)
    yield
    tensor.copy_(kept)


def test_the_loop_is_the_pipeline(loop, tmp_path):
    reference = run_reference(tmp_path, tiny_checkpoint(), [(case, "float32") for case in COMPARED])
    distances = {
        case.name: relative_l2(loop.latents(case), reference[case.name, "float32"]) for case in COMPARED
    }
    assert {name: distance for name, distance in distances.items() if not distance <= FP32_BAR} == {}


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_tensor_of_the_checkpoint_is_reached(loop, component):
    (file,) = (tiny_checkpoint() / component).glob("*.safetensors")
    stored = load_file(file)
    if component == "text_encoder":
        stored["encoder.embed_tokens.weight"] = stored.pop("shared.weight")
    views = loop.tensors(component)
    assert views.keys() == stored.keys()
    assert all(torch.equal(views[key], value) for key, value in stored.items())
    matrices = {key: value for key, value in stored.items() if initial_value(key) is None}
    assert all(key.endswith(".weight") and value.ndim >= 2 for key, value in matrices.items())


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_norm_bias_and_table_matters(loop, base, embeddings, component):
    moved = {}
    for key, tensor in loop.tensors(component).items():
        value = initial_value(key)
        if value is not None:
            with replaced(tensor, value):
                texts = component == "text_encoder"
                latents = loop.latents(BASE) if texts else loop.denoise(BASE, *embeddings)
            moved[key] = relative_l2(latents, base)
    assert torch.equal(loop.latents(BASE), base)
    assert {key: distance for key, distance in moved.items() if not distance >= LEAST} == {}


@pytest.mark.parametrize("component", ["transformer", "transformer_2"])
def test_rotary_positions_of_each_expert_matter(loop, base, embeddings, component, monkeypatch):
    model = loop.model(component)
    tables = model.rotary_tables

    def no_rotation(grid, device):
        cos, sin = tables(grid, device)
        return torch.ones_like(cos), torch.zeros_like(sin)

    monkeypatch.setattr(model, "rotary_tables", no_rotation)
    assert relative_l2(loop.denoise(BASE, *embeddings), base) >= LEAST


def test_each_expert_has_its_place(loop, base, embeddings, monkeypatch):
    first, second = loop.transformer, loop.transformer_2
    monkeypatch.setattr(loop, "transformer", second)
    monkeypatch.setattr(loop, "transformer_2", first)
    assert relative_l2(loop.denoise(BASE, *embeddings), base) >= LEAST


@pytest.mark.parametrize("field", ["guidance_scale", "guidance_scale_2"])
def test_each_guidance_matters(loop, base, embeddings, field):
    more = replace(BASE, **{field: getattr(BASE, field) + 1})
    assert relative_l2(loop.denoise(more, *embeddings), base) >= LEAST


@pytest.mark.parametrize("field", ["prompt", "negative_prompt"])
def test_every_word_matters(loop, base, field):
    words = getattr(BASE, field).split()
    moved = {}
    for index, word in enumerate(words):
        changed = replace(BASE, **{field: " ".join([*words[:index], "wooden", *words[index + 1 :]])})
        moved[word] = relative_l2(loop.latents(changed), base)
    assert {word: distance for word, distance in moved.items() if not distance >= LEAST} == {}
