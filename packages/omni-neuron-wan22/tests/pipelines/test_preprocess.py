"""What the engine refuses before a worker sees it: the rules of the command, as errors of the caller."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from omni_neuron.wan22.checkpoint.tiny import TinyGeometry, build_checkpoint

GOOD = {"height": 64, "width": 64, "num_frames": 17, "num_inference_steps": 2, "seed": 0}


def stage(model, **settings):
    names = ("boundary_ratio", "flow_shift", "diffusion_attention_config")
    return SimpleNamespace(**{"model": str(model), **dict.fromkeys(names), **settings})


@pytest.fixture(scope="module")
def engine():
    """The engine's types, imported once and late."""
    os.environ.setdefault("VLLM_NEURON_CPU_MODE", "1")
    from vllm_omni.diffusion.request import OmniDiffusionRequest
    from vllm_omni.errors import OmniClientError
    from vllm_omni.inputs.data import OmniDiffusionSamplingParams

    from omni_neuron.wan22.pipelines import preprocess

    return SimpleNamespace(
        factory=preprocess.get_wan22_pre_process_func,
        module=preprocess,
        refusal=OmniClientError,
        request=lambda prompt, fields: OmniDiffusionRequest(
            prompt=prompt, sampling_params=OmniDiffusionSamplingParams(**fields), request_id="r"
        ),
    )


@pytest.fixture(scope="module", params=[True, False], ids=["two-experts", "one-expert"])
def served(request, engine, tmp_path_factory):
    """The function for a checkpoint, and whether it has two experts."""
    folder = tmp_path_factory.mktemp("checkpoint")
    build_checkpoint(folder, TinyGeometry(two_experts=request.param))
    return engine.factory(stage(folder)), request.param


@pytest.mark.parametrize(
    ("prompt", "fields", "words"),
    [
        ("", {}, "prompt is ''"),
        ({"prompt": " \t"}, {}, "prompt is"),
        ("a \udcff ball", {}, "prompt has '\\udcff' at position 2"),
        ({"prompt": "a ball", "negative_prompt": "\udcff"}, {}, "negative_prompt has '\\udcff'"),
        ("a ball", {"height": 63}, "height is 63"),
        ("a ball", {"width": 24}, "width is 24"),
        ("a ball", {"height": 64.0}, "height is 64.0"),
        ("a ball", {"num_frames": 0}, "num_frames is 0"),
        ("a ball", {"num_inference_steps": 0}, "num_inference_steps is 0"),
        ("a ball", {"num_outputs_per_prompt": 0}, "num_outputs_per_prompt is 0, but it must be at least 1"),
        ("a ball", {"num_outputs_per_prompt": 1.5}, "num_outputs_per_prompt is 1.5"),
        ("a ball", {"num_inference_steps": 1001}, "num_inference_steps is 1001, but it must lie in 1..1000"),
        ("a ball", {"height": 16400}, "height is 16400, but it must be at most 16384"),
        ("a ball", {"num_frames": 4097}, "num_frames is 4097, but it must be at most 4093"),
        ("a ball", {"max_sequence_length": 513}, "max_sequence_length is 513, but it must lie in 1..512"),
        ("a ball", {"guidance_scale": 1e308}, "guidance_scale is 1e+308, but it must lie in 0..1000"),
        ("a ball", {"extra_args": {"flow_shift": 1e-320}}, "flow_shift is 1e-320"),
        ("a ball", {"extra_args": {"flow_shift": "five"}}, "flow_shift is 'five'"),
        ("a ball", {"seed": -1}, "seed is -1"),
        ("a ball", {"boundary_ratio": 1.1}, "boundary_ratio is 1.1"),
        ("a ball", {"guidance_scale": float("nan")}, "guidance_scale is nan"),
        ("a ball", {"extra_args": {"flow_shift": -1}}, "flow_shift is -1"),
        ("a ball", {"extra_args": {"sample_solver": "euler"}}, "sample_solver is 'euler'"),
        ("a ball", {"latents": torch.zeros(1, 16, 5, 8, 9)}, "(1, 16, 5, 8, 9)"),
        ("a ball", {"latents": torch.zeros(16, 5, 8, 8)}, "(16, 5, 8, 8)"),
        ("a ball", {"extra_args": {"preencode_mp4": True}}, "brings preencode_mp4"),
        ("a ball", {"sigmas": [1.0, 0.5]}, "brings sigmas"),
        ("a ball", {"timesteps": torch.tensor([999, 500])}, "brings timesteps"),
        ({"prompt": "a ball", "prompt_embeds": torch.zeros(1, 2)}, {}, "brings prompt_embeds"),
        ({"prompt": "a ball", "multi_modal_data": {"image": "no-such-file.png"}}, {}, "image"),
    ],
)
def test_a_bad_request_is_the_callers_error(engine, served, prompt, fields, words):
    pre_process, _ = served
    with pytest.raises(engine.refusal) as error:
        pre_process(engine.request(prompt, {**GOOD, **fields}))
    assert words in str(error.value)
    assert error.value.status_code == 400


def test_a_second_guidance_needs_a_second_expert(engine, served):
    pre_process, two_experts = served
    request = engine.request("a ball", {**GOOD, "guidance_scale_2": 3.0})
    if two_experts:
        assert pre_process(request).sampling_params.guidance_scale_2 == 3.0
        return
    with pytest.raises(engine.refusal, match="guidance_scale_2 is 3"):
        pre_process(request)


def test_a_boundary_needs_a_second_expert(engine, served):
    pre_process, two_experts = served
    request = engine.request("a ball", {**GOOD, "boundary_ratio": 0.5})
    if two_experts:
        assert pre_process(request).sampling_params.boundary_ratio == 0.5
        return
    with pytest.raises(engine.refusal, match=r"boundary_ratio is 0\.5, but this checkpoint has no second"):
        pre_process(request)


def test_a_boundary_needs_the_experts_that_the_stage_has_loaded(engine, tmp_path):
    build_checkpoint(tmp_path, TinyGeometry())
    for loaded_for, asked in ((0.25, 0.5), (1.0, 1.0), (0.0, None), (None, 1.0)):
        pre_process = engine.factory(stage(tmp_path, boundary_ratio=loaded_for))
        pre_process(engine.request("a ball", {**GOOD, "boundary_ratio": asked}))
    pre_process = engine.factory(stage(tmp_path, boundary_ratio=1.0))
    with pytest.raises(engine.refusal, match=r"boundary_ratio is 0\.5, but this stage was started with 1\.0"):
        pre_process(engine.request("a ball", {**GOOD, "boundary_ratio": 0.5}))


@pytest.mark.parametrize("setting", [{"flow_shift": 1e9}, {"boundary_ratio": 2.0}])
def test_settings_of_a_stage_have_the_same_bounds(engine, tmp_path, setting):
    build_checkpoint(tmp_path, TinyGeometry())
    with pytest.raises(ValueError, match=f"{next(iter(setting))} is .*, but it must lie in"):
        engine.factory(stage(tmp_path, **setting))


def test_a_role_that_no_site_has_is_refused(engine, tmp_path):
    build_checkpoint(tmp_path, TinyGeometry())
    roles = {"self": "FLASH_ATTN", "cross": "TORCH_SDPA", "cross_image": "TORCH_SDPA"}
    engine.factory(stage(tmp_path, diffusion_attention_config=SimpleNamespace(per_role=roles)))
    bad = SimpleNamespace(per_role={**roles, "cros": "FLASH_ATTN"})
    with pytest.raises(ValueError, match="has the role 'cros', but the roles are self, cross, cross_image"):
        engine.factory(stage(tmp_path, diffusion_attention_config=bad))


def test_a_good_request_passes_unchanged(engine, served):
    pre_process, _ = served
    sampling = pre_process(
        engine.request("a ball", {**GOOD, "latents": torch.zeros(1, 16, 5, 8, 8)})
    ).sampling_params
    assert {name: getattr(sampling, name) for name in GOOD} == GOOD


def test_frames_are_rounded_down_with_the_sentence_of_the_command(engine, served, monkeypatch):
    pre_process, _ = served
    said = []
    monkeypatch.setattr(engine.module.logger, "warning", said.append)
    request = pre_process(engine.request("a ball", {**GOOD, "num_frames": 20}))
    assert request.sampling_params.num_frames == 17
    assert said == ["num_frames is 20, which is not 4k + 1: rounded down to 17."]


def test_what_is_left_out_is_filled_in(engine, served):
    pre_process, _ = served
    sampling = pre_process(engine.request("a ball", {"num_frames": None})).sampling_params
    assert (sampling.height, sampling.width, sampling.num_frames) == (480, 832, 81)


def test_a_folder_that_is_no_checkpoint_is_refused_when_the_engine_starts(engine, tmp_path: Path):
    with pytest.raises(ValueError, match=r"model_index\.json"):
        engine.factory(stage(tmp_path))
