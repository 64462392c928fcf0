from __future__ import annotations

import os
from pathlib import Path

import pytest
from stage_file_helper import at, deploy, legacy, sample_of

from omni_neuron.platform.stage_config import apply_overrides, read_stage_config
from omni_neuron.platform.stage_config.key import Feature, Key
from omni_neuron.platform.stage_config.table import TABLE
from omni_neuron.runtime.errors import InputError

EXAMPLES = Path(__file__).parents[4] / "examples" / "stages"
FEATURE_PLACES = [
    (entry, place)
    for entry in TABLE
    if isinstance(entry, Feature)
    for place in (*entry.places.deploy, *entry.places.legacy)
]
# Of stages that are no diffusion stage; a diffusion stage that names one is told that there is no such key.
OF_LANGUAGE_MODELS = ["gpu_memory_utilization", "max_model_len", "enable_prefix_caching", "tokenizer_mode"]


def ids(case):
    return case if isinstance(case, str) else case.name


@pytest.mark.parametrize(
    ("key", "place"),
    [
        (e, p)
        for e in TABLE
        if isinstance(e, Key)
        for p in (*e.places.deploy, *e.places.legacy)
        if p != "pipeline"
    ],
    ids=ids,
)
def test_every_key_is_read_at_each_of_its_places(files, key, place):
    sample = sample_of(key.name)
    assert files.read(at(place, sample)).values[key.name] == key.kind.parse(sample)


@pytest.mark.parametrize(("feature", "place"), FEATURE_PLACES, ids=ids)
def test_what_we_lack_is_accepted_where_it_asks_for_nothing(files, feature, place):
    for neutral in (feature.neutral, None, "none", "auto", {}, []):
        assert feature.name not in files.read(at(place, neutral)).values


@pytest.mark.parametrize(("feature", "place"), FEATURE_PLACES, ids=ids)
def test_what_we_lack_is_refused_with_key_value_and_remedy(files, feature, place):
    message = files.refusal(at(place, "something else"))
    assert message.startswith(place.replace("stages.", "stages[0].").replace("stage_args.", "stage_args[0]."))
    assert ' is "something else" in ' in message
    assert feature.reason in message
    assert feature.remedy in message


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (deploy({"ulysses_mode": "advanced"}), ["stages[0].ulysses_mode is", "exchanged in one way only"]),
        (deploy({"ulysses_degree": 129}), ["stages[0].ulysses_degree is 129", "from 1 to 128"]),
        (deploy({"allgather_degree": 2}), ["allgather_degree is 2"]),
        (deploy({"vae_use_tiling": True}), ["vae_use_tiling is true", "or set it to false"]),
        (deploy({"lora_scale": True}), ["lora_scale is true"]),
        (deploy({"prompt_embed_cache_size": 32}), ["prompt_embed_cache_size is 32", "no caching of prompt"]),
        (deploy({"final_output_type": "audio"}), ['final_output_type is "audio"', "must be video"]),
        (deploy(data_parallel_size=2), ["data_parallel_size is 2"]),
        (deploy({"cache_backend": "cache_dit"}), ["no caching of steps"]),
        (
            legacy({"model_config": {"tensor_capture": {"modules": ["x"]}}}),
            ["tensor_capture is", "no capture"],
        ),
        (legacy({"model_stage": "thinker"}), ['model_stage is "thinker"', "must be dit or diffusion"]),
        (legacy(stage_type="llm"), ['stage_type is "llm"', "must be diffusion"]),
        (legacy({"parallel_config": {"vae_patch_parallel_size": 16}}), ["vae_patch_parallel_size is 16"]),
        (deploy(pipeline="qwen3_omni_moe"), ['pipeline is "qwen3_omni_moe"', "one diffusion stage"]),
        (deploy({"stage_id": 1}), ["stage_id is 1", "must be 0"]),
        (deploy({"cfg_parallel_size": 3}), ["cfg_parallel_size is 3", "from 1 to 2"]),
        (deploy({"boundary_ratio": 1.5}), ["boundary_ratio is 1.5", "from 0 to 1"]),
        (deploy({"dtype": "float16"}), ['dtype is "float16"', "float32 or bfloat16"]),
        (deploy({"max_batch_size": 2}), ["max_batch_size is 2", "set it to 1"]),
    ],
)
def test_refusals_name_key_value_rule_and_remedy(files, document, words):
    message = files.refusal(document)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("document", "hint"),
    [
        (deploy({"ring_degre": 2}), "stages.ring_degree"),
        (
            deploy({"parallel_config": {"tensor_paralel_size": 2}}),
            "stages.parallel_config.tensor_parallel_size",
        ),
        (deploy({"boundary": 0.9}), "stages.boundary_ratio"),
        (deploy(flow_shift=5.0), "stages.flow_shift"),
        (deploy({"seed": 1}), "stages.default_sampling_params.seed"),
        (deploy(parallel_config={"ring_degree": 2}), "stages.parallel_config"),
        (legacy(max_batch_size=2), "stage_args.runtime.max_batch_size"),
        (legacy({"flow_shif": 5}), "stage_args.engine_args.flow_shift"),
        (legacy({}, zzz=1), "remove it"),
    ],
)
def test_unknown_keys_are_refused_with_the_nearest_one(files, document, hint):
    message = files.refusal(document)
    assert "is not a known key" in message
    assert hint in message


@pytest.mark.parametrize("name", OF_LANGUAGE_MODELS)
def test_keys_of_language_models_are_refused_also_where_they_ask_for_nothing(files, name):
    assert f"stages[0].{name} (value false)" in files.refusal(deploy({name: False}))


def test_two_places_of_one_key_are_refused(files):
    message = files.refusal(deploy({"ring_degree": 2, "parallel_config": {"ring_degree": 2}}))
    assert "stages[0].parallel_config.ring_degree and stages[0].ring_degree" in message


def test_one_is_one_however_it_is_written(files):
    assert files.read(deploy({"lora_scale": 1.0, "max_num_seqs": 1})).values == {"stage_id": 0}


def test_null_leaves_a_key_unset(files):
    assert "flow_shift" not in files.read(deploy({"flow_shift": None})).values


def test_both_forms_say_the_same():
    new = read_stage_config(EXAMPLES / "wan22-t2v-a14b-480p.yaml")
    old = read_stage_config(EXAMPLES / "wan22-t2v-a14b-480p-0.24.yaml")
    only_old = {"stage_type", "model_stage", "final_output", "final_output_type", "process", "skip_warmup"}
    differs = {"model_class_name"}
    assert {k: v for k, v in old.values.items() if k not in only_old | differs} == {
        k: v for k, v in new.values.items() if k not in differs
    }
    assert only_old <= set(old.values)


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("wan22-t2v-a14b-480p.yaml", (4, 8, 2)),
        ("wan22-t2v-a14b-480p-0.24.yaml", (4, 8, 2)),
        ("wan22-t2v-a14b-720p.yaml", (8, 4, 2)),
        ("cpu-tp2-cp2-cfg2.yaml", (2, 2, 2)),
    ],
)
def test_the_examples_are_read(name, layout):
    config, sentences = apply_overrides(read_stage_config(EXAMPLES / name), {})
    assert (config.tensor_parallel_size, config.context_parallel_size, config.cfg_parallel_size) == layout
    assert config.devices == tuple(range(config.world_size))
    assert sentences == []


def test_every_example_is_tested():
    assert len(list(EXAMPLES.glob("*"))) == 4


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    pipe = tmp_path / "stage.yaml"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="cannot be read: not a regular file"):
        read_stage_config(pipe)
