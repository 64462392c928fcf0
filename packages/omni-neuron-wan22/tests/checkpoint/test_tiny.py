"""The tiny checkpoint: its bytes, its tensors, and what diffusers and transformers say of it."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.checkpoint.layout import read_checkpoint
from omni_neuron.wan22.checkpoint.tiny import TinyGeometry, build_checkpoint, tiny_checkpoint

REFERENCE = Path(__file__).parents[1] / "reference" / "checkpoint_report.py"
NORM_WEIGHTS = ("norm_q.weight", "norm_k.weight", "norm2.weight", "layer_norm.weight", "gamma")

BASE = {
    "prompt": "a red ball rolling over grass & sand",
    "negative_prompt": "blurry low-quality",
    "height": 64,
    "width": 64,
    "num_frames": 9,
    "steps": 3,
    "guidance_scale": 4.0,
    "guidance_scale_2": None,
    "flow_shift": 12.0,
    "boundary_ratio": None,
    "seed": 0,
    "dtype": "float32",
    "video": False,
}
CASES = {
    "base": {"video": True},
    "bf16": {"dtype": "bfloat16"},
    "prompt": {"prompt": "a blue ball rolling over grass & sand"},
    "negative": {"negative_prompt": "blurry ugly"},
    "spaces": {"prompt": "  a red\tball rolling\n over  grass & sand "},
    "escaped": {"prompt": "a red ball rolling over grass &amp; sand"},
    "guidance": {"guidance_scale": 5.0, "guidance_scale_2": 4.0},
    "guidance_2": {"guidance_scale_2": 5.0},
    "shift": {"flow_shift": 5.0},
    "seed": {"seed": 1},
    "off": {"guidance_scale": 1.0},
    "off_negative": {"guidance_scale": 1.0, "negative_prompt": "blurry ugly"},
    "low_off": {"guidance_scale_2": 1.0},
    "low_only": {"boundary_ratio": 1.0},
    "low_only_off": {"boundary_ratio": 1.0, "guidance_scale_2": 1.0},
    "low_only_both_off": {"boundary_ratio": 1.0, "guidance_scale": 1.0},
    "high_only": {"boundary_ratio": 0.0},
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return tiny_checkpoint(root=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def run(checkpoint, tmp_path_factory):
    """Report and results of one process with the libraries."""
    folder = tmp_path_factory.mktemp("libraries")
    cases = [{**BASE, **changes, "name": name} for name, changes in CASES.items()]
    (folder / "cases.json").write_text(json.dumps(cases))
    command = [sys.executable, REFERENCE, checkpoint, folder / "cases.json", folder / "out"]
    subprocess.run(command, check=True, timeout=200, capture_output=True)
    return json.loads((folder / "out.json").read_text()), load_file(folder / "out.safetensors")


@pytest.fixture(scope="module")
def libraries(run):
    return run[0]


@pytest.fixture(scope="module")
def results(run):
    return run[1]


def difference(results, name, other="base"):
    """Relative L2 distance of the final latents."""
    first, second = results[f"{name}.latents"].double(), results[f"{other}.latents"].double()
    return ((first - second).norm() / second.norm()).item()


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def weights(folder, component):
    (path,) = (folder / component).glob("*.safetensors")
    return load_file(path)


def test_it_is_small_and_quick(tmp_path):
    start = time.process_time()
    build_checkpoint(tmp_path, TinyGeometry())
    assert time.process_time() - start < 10
    assert sum(len(data) for data in contents(tmp_path).values()) < 20e6


def test_the_same_seed_gives_the_same_bytes(checkpoint, tmp_path):
    build_checkpoint(tmp_path, TinyGeometry())
    assert contents(tmp_path) == contents(checkpoint)


def test_another_seed_or_size_is_another_folder(checkpoint):
    root = checkpoint.parents[1]
    other = tiny_checkpoint(TinyGeometry(seed=1), root=root)
    assert other != checkpoint
    assert tiny_checkpoint(root=root) == checkpoint
    for component in ("transformer", "transformer_2", "vae", "text_encoder"):
        ours, theirs = weights(checkpoint, component), weights(other, component)
        assert not any(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_larger_geometry_keeps_the_rules(tmp_path):
    geometry = TinyGeometry(num_attention_heads=6, attention_head_dim=32, num_layers=3, two_experts=False)
    checkpoint = read_checkpoint(tiny_checkpoint(geometry, root=tmp_path))
    assert checkpoint.experts == ("transformer",)
    assert checkpoint.boundary_ratio is None
    assert weights(checkpoint.folder, "transformer")["blocks.2.attn1.to_q.weight"].shape == (192, 192)


def test_every_tensor_is_away_from_its_initial_value(checkpoint):
    """No part of a norm weight, bias or table is left at 1 or 0, and the spread is far above rounding."""
    for component in ("transformer", "transformer_2", "vae", "text_encoder"):
        for name, tensor in weights(checkpoint, component).items():
            is_norm = name.endswith(
                ("norm_q.weight", "norm_k.weight", "norm2.weight", "layer_norm.weight", "gamma")
            )
            initial = 1.0 if is_norm else 0.0
            assert tensor.dtype == torch.float32
            assert (tensor - initial).abs().mean() > 0.01, name
            assert tensor.std() > 0.01, name


def test_the_experts_share_no_tensor(checkpoint):
    first, second = weights(checkpoint, "transformer"), weights(checkpoint, "transformer_2")
    assert first.keys() == second.keys()
    assert not any(torch.equal(first[name], second[name]) for name in first)


def test_it_reads_back_as_a_checkpoint(checkpoint):
    read = read_checkpoint(checkpoint)
    assert read.folder == checkpoint
    assert read.experts == ("transformer", "transformer_2")
    assert read.boundary_ratio == 0.875
    assert (read.rules.spatial_scale, read.rules.temporal_scale, read.rules.latent_channels) == (8, 4, 16)


def test_the_libraries_find_every_tensor_and_no_other(libraries):
    assert libraries["problems"] == {"transformer": [], "transformer_2": [], "vae": [], "text_encoder": []}
    assert libraries["solver"] == [2, "bh2", "flow_prediction"]


def test_words_are_told_apart(libraries):
    ids, tokens = libraries["ids"], libraries["tokens"]
    assert len({tuple(row) for row in ids}) == len(ids)
    assert tokens[0][:4] == ["▁a", "▁red", "▁ball", "</s>"]
    assert tokens[1][:4] == ["▁a", "▁blue", "▁ball", "</s>"]
    assert tokens[2][:6] == ["▁a", "▁", "r", "i", "d", "▁ball"]
    assert "<unk>" not in tokens[3]
    assert tokens[4][0] == "▁two"


def test_a_prompt_ends_with_1_and_is_padded_with_0(libraries):
    for row, mask in zip(libraries["ids"], libraries["mask"], strict=True):
        length = sum(mask)
        assert mask == [1] * length + [0] * (32 - length)
        assert row[length - 1] == 1
        assert set(row[length:]) == {0}
    assert len(libraries["truncated"]) == 16
    assert libraries["truncated"][-1] == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("num_layers", 0), ("attention_head_dim", 5), ("text_heads", 7), ("boundary_ratio", 1.5)],
)
def test_an_impossible_geometry_is_refused(field, value):
    with pytest.raises(InputError, match=field):
        replace(TinyGeometry(), **{field: value})


def test_diffusers_makes_a_video_of_it(results):
    latents, video = results["base.latents"], results["base.video"]
    assert latents.shape == (1, 16, 3, 8, 8)
    assert latents.dtype == torch.float32
    assert 0.5 < latents.std() < 5
    assert video.shape == (1, 3, 9, 64, 64)


def test_the_video_is_not_degenerate(results):
    video = results["base.video"]
    assert 0.2 < video.std() < 0.6
    assert (video.abs() > 0.99).float().mean() < 0.1
    assert (video.mean(dim=(0, 2, 3, 4)).abs() < 0.5).all()
    for dim in (2, 3, 4):  # it changes in time, height and width
        assert video.std(dim=dim).mean() > 0.1


@pytest.mark.parametrize("name", ["prompt", "negative", "guidance", "guidance_2", "shift", "seed", "escaped"])
def test_every_part_of_a_request_matters(results, name):
    assert difference(results, name) > 1e-2


@pytest.mark.parametrize("name", ["low_only", "high_only"])
def test_both_experts_are_at_work(results, name):
    assert difference(results, name) > 1e-2


def test_only_white_space_is_cleaned_from_a_prompt(results):
    assert torch.equal(results["spaces.latents"], results["base.latents"])


def test_a_stage_without_guidance_has_no_negative_branch(results):
    assert torch.equal(results["off.latents"], results["off_negative.latents"])
    assert torch.equal(results["low_only_off.latents"], results["low_only_both_off.latents"])
    assert difference(results, "low_off") > 1e-2
    assert difference(results, "low_off", "off") > 1e-2


def test_bf16_is_near_and_keeps_fp32_latents(results):
    """One rounding is 1.7e-3; guidance of 4 multiplies what two branches lose by up to 7."""
    assert results["bf16.latents"].dtype == torch.float32
    assert 1e-3 < difference(results, "bf16") < 0.1
