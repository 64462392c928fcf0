"""From options to a plan, without an engine: what bad input gets, and what goes before what."""

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from omni_neuron.distributed.errors import CheckpointError
from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.checkpoint.tiny import TinyGeometry, build_checkpoint
from omni_neuron.wan22.generation import plan as plan_module
from omni_neuron.wan22.generation.options import GenerateOptions
from omni_neuron.wan22.generation.plan import plan_generation

WEIGHTS = "diffusion_pytorch_model.safetensors"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two-experts")
    build_checkpoint(folder, TinyGeometry())
    return folder


@pytest.fixture(scope="module")
def one_expert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one-expert")
    build_checkpoint(folder, TinyGeometry(two_experts=False))
    return folder


@pytest.fixture(autouse=True)
def _work_in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def options(model, **given):
    return GenerateOptions(**{"prompt": "a ball", "model": model, "height": 64, "width": 64, **given})


def refusal(checkpoint, **given):
    with pytest.raises(InputError) as error:
        plan_generation(options(**{"model": checkpoint, **given}))
    sentence = str(error.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


def stage_file(tmp_path, text):
    path = tmp_path / "stage.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"prompt": ""}, ["prompt is ''"]),
        ({"prompt": " \n"}, ["prompt is ' \\n'"]),
        ({"prompt": "a \udcff ball"}, ["prompt has '\\udcff' at position 2", "UTF-8"]),
        ({"negative_prompt": "\udcff"}, ["negative_prompt has '\\udcff' at position 0"]),
        ({"height": 63}, ["height is 63", "multiple of 16", "48 and 64"]),
        ({"width": 8}, ["width is 8", "multiple of 16"]),
        ({"num_frames": 0}, ["num_frames", "0"]),
        ({"steps": 0}, ["num_inference_steps (--steps) is 0", "at least 1"]),
        ({"steps": 1001}, ["num_inference_steps is 1001", "1..1000"]),
        ({"height": 16400}, ["height is 16400", "at most 16384"]),
        ({"num_frames": 4097}, ["num_frames is 4097", "at most 4093"]),
        ({"guidance_scale": 1e308}, ["guidance_scale is 1e+308", "0..1000"]),
        ({"guidance_scale_2": 1001.0}, ["guidance_scale_2 is 1001", "0..1000"]),
        ({"flow_shift": 1e-320}, ["flow_shift is 1e-320", "0.01..100"]),
        ({"steps": -4}, ["num_inference_steps (--steps) is -4"]),
        ({"boundary_ratio": 1.5}, ["boundary_ratio (--boundary-ratio) is 1.5", "0 to 1"]),
        ({"boundary_ratio": -0.5}, ["boundary_ratio (--boundary-ratio) is -0.5"]),
        ({"boundary_ratio": float("nan")}, ["boundary_ratio (--boundary-ratio) is NaN"]),
        ({"guidance_scale": -1.0}, ["guidance_scale (--guidance-scale) is -1"]),
        ({"guidance_scale": float("inf")}, ["guidance_scale (--guidance-scale) is Infinity"]),
        ({"flow_shift": 0.0}, ["flow_shift (--flow-shift) is 0"]),
        ({"seed": -1}, ["seed (--seed) is -1"]),
        ({"seed": 2**64}, ["seed is 18446744073709551616"]),
        ({"tp": 0}, ["tensor_parallel_size (--tp) is 0"]),
        ({"tp": 3}, ["num_attention_heads=4", "tp=3", "1, 2, 4"]),
        ({"tp": 8}, ["num_attention_heads=4", "tp=8"]),
        ({"cp": -2}, ["cp is -2", "at least 1"]),
        ({"cp": -4, "ulysses": 2}, ["cp is -4", "at least 1"]),
        ({"ulysses": 2}, ["ulysses is 2", "divide the 1 context-parallel ranks"]),
        ({"cp": 4, "ulysses": 3}, ["ulysses is 3", "divide the 4 context-parallel ranks"]),
        ({"cp": 4, "ulysses": 0}, ["ulysses is 0", "at least 1"]),
        ({"tp": 2, "cp": 4, "ulysses": 4}, ["heads=2", "ulysses=4"]),
        ({"cfg": 3}, ["cfg_parallel_size (--cfg) is 3"]),
        ({"dtype": "float16"}, ["dtype (--dtype)", "float16"]),
        ({"output": Path("out.avi")}, ["output is 'out.avi'", ".mp4"]),
        ({"output": Path("missing/out.mp4")}, ["missing/out.mp4", "does not exist"]),
        ({"output": Path("/proc/out.mp4")}, ["/proc/out.mp4 cannot be written"]),
        ({"save_latents": Path("out.pt")}, ["save_latents is 'out.pt'", ".safetensors"]),
        ({"save_latents": Path("missing/out.safetensors")}, ["missing/out.safetensors", "does not exist"]),
        ({"stage_config": Path("missing.yaml")}, ["missing.yaml"]),
        ({"output": Path("~nosuchuser/x.mp4")}, ["output is '~nosuchuser/x.mp4'", "no home"]),
        ({"save_latents": Path("~nosuchuser/x.safetensors")}, ["save_latents is '~nosuchuser", "no home"]),
        ({"stage_config": Path("~nosuchuser/x.yaml")}, ["stage_config is '~nosuchuser/x.yaml'", "no home"]),
        ({"model": Path("~nosuchuser")}, ["model is '~nosuchuser'", "no home"]),
    ],
)
def test_bad_input_is_one_sentence_with_field_value_and_rule(checkpoint, given, words):
    sentence = refusal(checkpoint, **given)
    for word in words:
        assert word in sentence


def test_no_such_model(tmp_path):
    assert "no such folder" in refusal(tmp_path / "nothing")


@pytest.mark.parametrize("linked", [False, True])
def test_nothing_is_written_into_the_checkpoint(checkpoint, tmp_path, linked):
    folder = tmp_path / "checkpoint"
    if linked:  # as the caches of model hubs are
        folder.mkdir()
        for entry in checkpoint.iterdir():
            (folder / entry.name).symlink_to(entry)
    else:
        shutil.copytree(checkpoint, folder)
    weights = folder / "transformer" / WEIGHTS
    before = weights.read_bytes()
    places = [folder, folder / "transformer"] + ([checkpoint / "transformer"] if linked else [])
    for place in places:
        for given in ({"save_latents": place / WEIGHTS}, {"output": place / "out.mp4"}):
            sentence = refusal(folder, **given)
            assert f"lies in the checkpoint {folder}" in sentence
    assert weights.read_bytes() == before
    assert plan_generation(options(folder, output=tmp_path / "out.mp4")).video == tmp_path / "out.mp4"


def test_a_second_guidance_needs_a_second_expert(checkpoint, one_expert):
    assert "guidance_scale_2 is 3.0" in refusal(one_expert, guidance_scale_2=3.0)
    plan = plan_generation(options(checkpoint, guidance_scale_2=3.0))
    assert plan.request["guidance_scale_2"] == 3.0


def test_the_vae_of_48_channels_needs_multiples_of_32(checkpoint, tmp_path):
    folder = shutil.copytree(checkpoint, tmp_path / "vae48")
    vae = {"z_dim": 48, "latents_mean": [0.0] * 48, "latents_std": [1.0] * 48, "out_channels": 12}
    _change(folder / "vae/config.json", **vae, patch_size=2, scale_factor_spatial=16)
    for expert in ("transformer", "transformer_2"):
        _change(folder / expert / "config.json", in_channels=48, out_channels=48)
    assert "multiple of 32" in refusal(folder, height=48)
    assert "multiple of 32" in refusal(folder, width=80)


def test_frames_are_rounded_down_with_a_message(checkpoint):
    plan = plan_generation(options(checkpoint, num_frames=18))
    assert plan.request["num_frames"] == 17
    (note,) = plan.notes
    assert "num_frames is 18" in note
    assert plan_generation(options(checkpoint, num_frames=17)).notes == ()


def test_heads_of_the_text_encoder_count_too(tmp_path):
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    build_checkpoint(folder, TinyGeometry(text_heads=2))
    assert "num_heads of the text encoder=2" in refusal(folder, tp=4)


def test_devices_that_do_not_match_the_layout(checkpoint, tmp_path):
    file = stage_file(
        tmp_path,
        'stages:\n  - stage_id: 0\n    devices: "0-3"\n    parallel_config:\n      tensor_parallel_size: 4\n',
    )
    assert plan_generation(options(checkpoint, stage_config=file)).stage.world_size == 4
    sentence = refusal(checkpoint, stage_config=file, tp=2)
    assert "0,1,2,3" in sentence
    assert "takes 2" in sentence


def test_a_rate_that_no_video_has(checkpoint, tmp_path):
    file = stage_file(tmp_path, "stages:\n  - stage_id: 0\n    default_sampling_params:\n      fps: 5000\n")
    assert "fps is 5000" in refusal(checkpoint, stage_config=file)


def test_every_faulty_tensor_of_every_component_is_listed(checkpoint, tmp_path):
    folder = shutil.copytree(checkpoint, tmp_path / "faulty")
    _retensor(folder / "transformer" / WEIGHTS, drop="proj_out.bias")
    _retensor(folder / "transformer_2" / WEIGHTS, add="surplus")
    _retensor(folder / "vae" / WEIGHTS, reshape="post_quant_conv.bias")
    _retensor(folder / "text_encoder/model.safetensors", drop="encoder.final_layer_norm.weight")
    with pytest.raises(CheckpointError) as error:
        plan_generation(options(folder))
    assert error.value.missing == ("proj_out.bias", "encoder.final_layer_norm.weight")
    assert error.value.extra == ("surplus",)
    assert len(error.value.misfit) == 1
    sentence = str(error.value)
    for word in ("proj_out.bias", "surplus", "post_quant_conv.bias", "final_layer_norm.weight", "[17]"):
        assert word in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("lost", [1, 5000])
@pytest.mark.parametrize(
    "file", [f"transformer_2/{WEIGHTS}", f"vae/{WEIGHTS}", "text_encoder/model.safetensors"]
)
def test_a_truncated_file_is_named(checkpoint, tmp_path, file, lost):
    folder = shutil.copytree(checkpoint, tmp_path / "truncated")
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[:-lost])
    sentence = refusal(folder)
    assert str(folder / file) in sentence
    assert "truncated" in sentence


def test_flags_go_before_the_file_and_are_said_and_the_file_before_the_defaults(checkpoint, tmp_path):
    block = {
        "height": 96,
        "width": 80,
        "num_frames": 9,
        "num_inference_steps": 7,
        "guidance_scale": 2.5,
        "seed": 42,
    }
    stage = {"stage_id": 0, "flow_shift": 12.0, "default_sampling_params": {**block, "fps": 24}}
    file = stage_file(tmp_path, yaml.safe_dump({"dtype": "float32", "stages": [stage]}))
    given = GenerateOptions("a ball", model=checkpoint, stage_config=file, steps=3, height=64)
    plan = plan_generation(given)
    assert plan.notes == (
        "height: 96 (file) -> 64 (--height)",
        "num_inference_steps: 7 (file) -> 3 (--steps)",
    )
    assert plan.request == {
        "prompt": "a ball",
        "negative_prompt": "",
        **block,
        "height": 64,
        "num_inference_steps": 3,
        "guidance_scale_2": None,
        "fps": 24,
    }
    assert plan.stage.get("dtype") == "float32"
    assert plan.stage.get("flow_shift") == 12.0


def test_the_older_form_of_a_stage_file_says_the_same(checkpoint, tmp_path):
    block = {"height": 96, "width": 80, "num_frames": 9, "num_inference_steps": 7, "seed": 42}
    new = {
        "stages": [{"stage_id": 0, "parallel_config": {"ring_degree": 2}, "default_sampling_params": block}]
    }
    engine = {"parallel_config": {"ring_degree": 2}}
    old = {"stage_args": [{"stage_id": 0, "engine_args": engine, "default_sampling_params": block}]}
    plans = []
    for name, document in (("new", new), ("old", old)):
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(document))
        plans.append(plan_generation(GenerateOptions("a ball", model=checkpoint, stage_config=file)))
    assert plans[0].request == plans[1].request
    assert plans[0].layout == plans[1].layout == {"tp": 1, "cp": 2, "cfg": 1}


def test_defaults_of_a_published_checkpoint_and_of_the_tiny_one(checkpoint, monkeypatch):
    monkeypatch.setattr(plan_module, "tiny_checkpoint", lambda: checkpoint)
    seen = []
    for model in (checkpoint, None):
        plan = plan_generation(GenerateOptions("a ball", model=model))
        request = plan.request
        seen.append((request["height"], request["width"], request["num_frames"], plan.stage.get("dtype")))
        assert (request["num_inference_steps"], request["guidance_scale"], request["seed"]) == (40, 4.0, 0)
        assert plan.layout == {"tp": 1, "cp": 1, "cfg": 1}
    assert seen == [(480, 832, 81, "bfloat16"), (64, 64, 17, "float32")]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt", "a cube"),
        ("negative_prompt", "grey"),
        ("height", 96),
        ("width", 80),
        ("num_frames", 9),
        ("steps", 3),
        ("guidance_scale", 2.5),
        ("guidance_scale_2", 1.5),
        ("flow_shift", 12.0),
        ("boundary_ratio", 0.5),
        ("seed", 7),
        ("tp", 2),
        ("cp", 2),
        ("cfg", 2),
        ("dtype", "float32"),
        ("output", Path("other.mp4")),
        ("save_latents", Path("out.safetensors")),
    ],
)
def test_no_option_is_ignored(checkpoint, field, value):
    plain, changed = (
        plan_generation(options(checkpoint)),
        plan_generation(options(checkpoint, **{field: value})),
    )
    assert plain != changed
    assert value in _leaves(changed)
    assert value not in _leaves(plain)


def test_outputs_are_relative_to_where_the_command_runs(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    plan = plan_generation(options(checkpoint, save_latents=Path("~/l.safetensors")))
    assert plan.video == Path("out.mp4")
    assert plan.contact_sheet == Path("out.png")
    assert plan.latents == tmp_path / "l.safetensors"


def _leaves(plan):
    stage = [value for name, value in plan.stage.values.items() if name not in plan.request]
    layout = [degree for degree in plan.layout.values() if degree > 1]
    numbers = [*stage, *layout, *plan.request.values()]
    return [*(value for value in numbers if value is not None), plan.video, plan.latents]


def _change(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def _retensor(path, drop=None, add=None, reshape=None):
    tensors = load_file(path)
    if drop is not None:
        del tensors[drop]
    if add is not None:
        tensors[add] = torch.zeros(3)
    if reshape is not None:
        tensors[reshape] = torch.zeros(17)
    save_file(tensors, path)


@pytest.mark.parametrize(
    ("flags", "ulysses", "cp"),
    [
        ({"cp": 4, "ulysses": 2}, 2, 4),
        ({"cp": 4}, 2, 4),
        ({"ulysses": 4}, 4, 4),
        ({"ulysses": 1}, 1, 4),
        ({"cp": 2}, 2, 2),
        ({}, 2, 4),
    ],
)
def test_the_ring_is_what_ulysses_leaves_of_context_parallelism(checkpoint, tmp_path, flags, ulysses, cp):
    file = stage_file(tmp_path, "stages: [{stage_id: 0, ulysses_degree: 2, ring_degree: 2}]")
    plan = plan_generation(options(checkpoint, stage_config=file, **flags))
    assert plan.layout == {"tp": 1, "cp": cp, "cfg": 1}
    assert (plan.stage.ulysses_degree, plan.stage.context_parallel_size) == (ulysses, cp)


def test_a_layout_that_the_tiny_checkpoint_lacks_the_heads_for_names_it(checkpoint, monkeypatch):
    monkeypatch.setattr(plan_module, "tiny_checkpoint", lambda: checkpoint)
    assert "this is the tiny checkpoint, as --model is not given." in refusal(None, tp=3)
    assert "tiny" not in refusal(checkpoint, tp=3)
