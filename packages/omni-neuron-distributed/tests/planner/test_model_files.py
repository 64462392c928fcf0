import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from omni_neuron.distributed.planner.job import make_job
from omni_neuron.distributed.planner.model_files import known_models, load_model
from omni_neuron.runtime.errors import InputError

INDEX = {
    "_class_name": "WanPipeline",
    "expand_timesteps": True,
    "transformer_2": [None, None],
}
TRANSFORMER = {
    "num_layers": 30,
    "num_attention_heads": 24,
    "attention_head_dim": 128,
    "ffn_dim": 14336,
    "in_channels": 48,
    "out_channels": 48,
    "patch_size": [1, 2, 2],
    "text_dim": 4096,
    "freq_dim": 256,
}
VAE = {
    "base_dim": 160,
    "decoder_base_dim": 256,
    "z_dim": 48,
    "dim_mult": [1, 2, 4, 4],
    "num_res_blocks": 2,
    "temperal_downsample": [False, True, True],
    "is_residual": True,
    "in_channels": 12,
    "patch_size": 2,
    "scale_factor_temporal": 4,
    "scale_factor_spatial": 16,
}
TEXT_ENCODER = {
    "num_layers": 24,
    "d_model": 4096,
    "num_heads": 64,
    "d_kv": 64,
    "d_ff": 10240,
    "vocab_size": 256384,
    "relative_attention_num_buckets": 32,
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    (tmp_path / "model_index.json").write_text(json.dumps(INDEX))
    for part, config in (("transformer", TRANSFORMER), ("vae", VAE), ("text_encoder", TEXT_ENCODER)):
        (tmp_path / part).mkdir()
        (tmp_path / part / "config.json").write_text(json.dumps(config))
    return tmp_path


def test_the_four_models_have_data_files():
    assert known_models() == ["wan2.1-t2v-1.3b", "wan2.2-i2v-a14b", "wan2.2-t2v-a14b", "wan2.2-ti2v-5b"]


def test_a_folder_of_a_known_model_is_that_model(checkpoint: Path):
    known = load_model("wan2.2-ti2v-5b")
    assert load_model(str(checkpoint)) == replace(known, name=checkpoint.name)


def test_another_geometry_has_a_size_that_its_tokens_tile(checkpoint: Path):
    for layers, heads, size in ((29, 24, (704, 1280)), (30, 12, (480, 832))):
        config = {**TRANSFORMER, "num_layers": layers, "num_attention_heads": heads}
        (checkpoint / "transformer" / "config.json").write_text(json.dumps(config))
        job = make_job(load_model(str(checkpoint)))
        assert (job.height, job.width, job.num_frames, job.steps) == (*size, 81, 40)


def test_a_second_expert_and_an_image_pipeline_are_seen(checkpoint: Path):
    index = {**INDEX, "_class_name": "WanImageToVideoPipeline", "transformer_2": ["diffusers", "Wan"]}
    (checkpoint / "model_index.json").write_text(json.dumps(index))
    found = load_model(str(checkpoint))
    assert (found.experts, found.image_condition) == (2, True)


def test_optional_fields_of_the_older_vae_have_its_defaults(checkpoint: Path):
    config = {**VAE, "base_dim": 96, "decoder_base_dim": None, "z_dim": 16}
    for field in (
        "is_residual",
        "in_channels",
        "patch_size",
        "scale_factor_temporal",
        "scale_factor_spatial",
    ):
        del config[field]
    (checkpoint / "vae" / "config.json").write_text(json.dumps(config))
    assert load_model(str(checkpoint)).vae == load_model("wan2.2-t2v-a14b").vae


def test_an_unknown_model_is_refused_with_the_nearest_name():
    with pytest.raises(InputError, match=r"model='wan2\.2-t2v-14b' .* nearest name is wan2\.2-t2v-a14b"):
        load_model("wan2.2-t2v-14b")


def test_a_missing_field_is_named(checkpoint: Path):
    config = {name: value for name, value in TRANSFORMER.items() if name != "ffn_dim"}
    (checkpoint / "transformer" / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"transformer/config\.json lacks the field 'ffn_dim': fetch"):
        load_model(str(checkpoint))


@pytest.mark.parametrize("content", ["{", "[]"])
def test_an_unreadable_file_is_named(checkpoint: Path, content: str):
    (checkpoint / "vae" / "config.json").write_text(content)
    with pytest.raises(InputError, match=r"vae/config\.json must"):
        load_model(str(checkpoint))


WRONG = [
    ("transformer", "num_attention_heads", "24"),
    ("transformer", "num_attention_heads", 0),
    ("transformer", "num_attention_heads", True),
    ("transformer", "num_attention_heads", 1e308),
    ("transformer", "num_attention_heads", None),
    ("transformer", "num_layers", 1025),
    ("transformer", "ffn_dim", float("nan")),
    ("transformer", "ffn_dim", 10**400),
    ("transformer", "patch_size", 2),
    ("transformer", "patch_size", [2, 2]),
    ("vae", "dim_mult", []),
    ("vae", "num_res_blocks", 10**9),
    ("vae", "temperal_downsample", [True]),
    ("vae", "temperal_downsample", [0, 1, 1]),
    ("vae", "is_residual", "no"),
    ("vae", "scale_factor_spatial", 0),
    ("vae", "patch_size", [2, 2]),
    ("text_encoder", "num_heads", -1),
]


@pytest.mark.parametrize(("part", "field", "value"), WRONG)
def test_a_value_that_no_model_has_is_named(checkpoint: Path, part: str, field: str, value: object):
    file = checkpoint / part / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
    with pytest.raises(InputError, match=rf"{field}=.* of .*{part}/config\.json must .*: take"):
        load_model(str(checkpoint))


def test_an_entry_of_a_list_is_named(checkpoint: Path):
    config = {**TRANSFORMER, "patch_size": [1, 0, 2]}
    (checkpoint / "transformer" / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"patch_size\[1\]=0 .* whole number from 1"):
        load_model(str(checkpoint))


@pytest.mark.parametrize("entry", [5, ["WanTransformer3DModel"]])
def test_an_expert_without_library_and_class_is_refused(checkpoint: Path, entry: object):
    (checkpoint / "model_index.json").write_text(json.dumps({**INDEX, "transformer_2": entry}))
    with pytest.raises(InputError, match=r"transformer_2=.* must be a pair of a library and a class"):
        load_model(str(checkpoint))


def test_what_is_no_file_is_refused_without_waiting(checkpoint: Path):
    file = checkpoint / "vae" / "config.json"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(InputError, match=r"vae/config\.json must be a JSON file"):
        load_model(str(checkpoint))


def test_brackets_without_end_are_refused(checkpoint: Path):
    (checkpoint / "vae" / "config.json").write_text("[" * 200_000)
    with pytest.raises(InputError, match=r"vae/config\.json must be a JSON file"):
        load_model(str(checkpoint))


def test_a_name_too_long_for_a_path_is_an_unknown_model():
    with pytest.raises(InputError, match="nearest name"):
        load_model("a" * 5000)
