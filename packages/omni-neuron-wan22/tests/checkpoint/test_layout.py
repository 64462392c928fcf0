"""What the layout check accepts, and the sentence that everything else gets."""

import json
import shutil

import pytest

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.checkpoint.layout import read_checkpoint
from omni_neuron.wan22.checkpoint.tiny import TinyGeometry, build_checkpoint


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    build_checkpoint(folder, TinyGeometry())
    return folder


@pytest.fixture
def folder(good, tmp_path):
    return shutil.copytree(good, tmp_path / "checkpoint")


def change(path, **fields):
    content = json.loads(path.read_text())
    content.update(fields)
    path.write_text(json.dumps(content))


def refusal(folder):
    with pytest.raises(InputError) as error:
        read_checkpoint(folder)
    sentence = str(error.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


def test_a_name_that_no_folder_can_have(tmp_path):
    assert "file name too long" in refusal(tmp_path / ("a" * 256))


@pytest.mark.parametrize("entry", [5, True, "x", ["diffusers"], {"class": "WanTransformer3DModel"}])
def test_a_second_expert_that_is_no_entry(folder, entry):
    change(folder / "model_index.json", transformer_2=entry)
    assert "has no transformer_2" in refusal(folder)


def test_a_folder_that_is_not_there(tmp_path):
    assert "no such folder" in refusal(tmp_path / "nothing")


def test_a_folder_of_something_else(tmp_path):
    assert "model_index.json" in refusal(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", "\xff"])
def test_an_index_that_is_no_json_object(folder, text):
    (folder / "model_index.json").write_bytes(text.encode("latin-1"))
    assert "model_index.json" in refusal(folder)


def test_another_pipeline(folder):
    change(folder / "model_index.json", _class_name="WanImageToVideoPipeline")
    assert "WanImageToVideoPipeline" in refusal(folder)


@pytest.mark.parametrize("name", ["transformer", "vae", "text_encoder", "tokenizer", "scheduler"])
@pytest.mark.parametrize("entry", [None, [None, None]])
def test_a_component_that_the_index_lacks(folder, name, entry):
    change(folder / "model_index.json", **{name: entry})
    assert f"no {name}" in refusal(folder)


@pytest.mark.parametrize(
    "name", ["transformer", "transformer_2", "vae", "text_encoder", "tokenizer", "scheduler"]
)
def test_a_component_of_another_class(folder, name):
    change(folder / "model_index.json", **{name: ["diffusers", "Other"]})
    sentence = refusal(folder)
    assert f"gives {name} the class 'Other'" in sentence


@pytest.mark.parametrize(
    "file",
    [
        "transformer/config.json",
        "transformer_2/diffusion_pytorch_model.safetensors",
        "vae/diffusion_pytorch_model.safetensors",
        "text_encoder/model.safetensors",
        "tokenizer/tokenizer.json",
        "scheduler/scheduler_config.json",
    ],
)
def test_a_file_that_is_not_there(folder, file):
    (folder / file).unlink()
    assert file.split("/")[1] in refusal(folder)


def test_sharded_weights_are_found_by_their_index(folder):
    weights = folder / "transformer" / "diffusion_pytorch_model.safetensors"
    weights.rename(weights.with_name("diffusion_pytorch_model-00001-of-00001.safetensors"))
    weights.with_name(f"{weights.name}.index.json").write_text("{}")
    assert read_checkpoint(folder).experts == ("transformer", "transformer_2")


@pytest.mark.parametrize("entry", [None, [None, None]])
def test_one_expert(folder, entry):
    change(folder / "model_index.json", transformer_2=entry, boundary_ratio=None)
    shutil.rmtree(folder / "transformer_2")
    read = read_checkpoint(folder)
    assert read.experts == ("transformer",)
    assert not read.rules.two_experts
    assert read.boundary_ratio is None


@pytest.mark.parametrize("value", [1.5, -0.1, "0.9", True])
def test_a_boundary_that_is_none(folder, value):
    change(folder / "model_index.json", boundary_ratio=value)
    assert "boundary_ratio" in refusal(folder)


@pytest.mark.parametrize(
    ("file", "field", "value"),
    [
        ("transformer/config.json", "in_channels", 36),
        ("transformer/config.json", "out_channels", 48),
        ("transformer_2/config.json", "text_dim", 4096),
        ("transformer/config.json", "patch_size", [1, 1, 1]),
        ("vae/config.json", "scale_factor_spatial", 16),
        ("vae/config.json", "scale_factor_temporal", 8),
    ],
)
def test_parts_that_do_not_fit(folder, file, field, value):
    change(folder / file, **{field: value})
    sentence = refusal(folder)
    assert file in sentence
    assert f"{field} is {value}" in sentence or f"{field}={value} but the stages give" in sentence


def test_the_48_channel_vae_has_larger_patches(folder):
    vae = {"z_dim": 48, "latents_mean": [0.0] * 48, "latents_std": [1.0] * 48, "is_residual": True}
    pixels = {"patch_size": 2, "in_channels": 12, "out_channels": 12, "scale_factor_spatial": 16}
    change(folder / "vae" / "config.json", **vae, **pixels)
    for expert in ("transformer", "transformer_2"):
        change(folder / expert / "config.json", in_channels=48, out_channels=48)
    rules = read_checkpoint(folder).rules
    assert (rules.spatial_scale, rules.latent_channels, rules.size_multiple) == (16, 48, 32)
