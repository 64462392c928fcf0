"""The pipeline as a worker holds it: one rank, the tiny checkpoint, the engine's own request objects."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import pytest
import torch
from vllm_omni.diffusion.forward_context import set_forward_context
from vllm_omni.diffusion.request import OmniDiffusionRequest
from vllm_omni.diffusion.worker.request_batch import DiffusionRequestBatch
from vllm_omni.inputs.data import OmniDiffusionSamplingParams

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.pipelines import text_to_video
from omni_neuron.wan22.pipelines.text_to_video import NeuronWanPipeline

SIZE = {"height": 32, "width": 32, "num_frames": 5}
SHAPE = (1, 16, 2, 4, 4)
STAGES = {"text_encode", "denoise", "vae_decode"}
FP32_BAR = 3e-6


@pytest.fixture(scope="module")
def worker(make_worker: Any) -> Any:
    return make_worker()


@pytest.fixture(scope="module")
def pipeline(worker: Any) -> Any:
    return worker.model_runner.pipeline


def _request(prompt: Any = "a red ball", **sampling: Any) -> DiffusionRequestBatch:
    seed = sampling.pop("seed", 0)
    fields = {**SIZE, "num_inference_steps": 2, "generator": torch.Generator().manual_seed(seed), **sampling}
    if "latents" in fields:
        del fields["generator"]
    parameters = OmniDiffusionSamplingParams(**fields)
    return DiffusionRequestBatch([OmniDiffusionRequest(prompt, parameters, "request")])


def _serve(worker: Any, request: DiffusionRequestBatch) -> Any:
    context = set_forward_context(vllm_config=worker.vllm_config, omni_diffusion_config=worker.od_config)
    with torch.inference_mode(), context:
        (output,) = worker.model_runner.pipeline.forward(request)
    return output


def _latents(worker: Any, **request: Any) -> torch.Tensor:
    extra_args = {"return_latents": True, **request.pop("extra_args", {})}
    return _serve(worker, _request(**request, extra_args=extra_args)).trajectory_latents


def test_it_is_what_both_names_lead_to(pipeline: Any) -> None:
    assert type(pipeline) is NeuronWanPipeline
    assert pipeline.weights_sources == []


def test_loading_names_every_parameter(pipeline: Any) -> None:
    before = pipeline.transformer.proj_out.weight.clone()
    with torch.no_grad():
        pipeline.transformer.proj_out.weight.zero_()
    assert pipeline.load_weights(()) == {name for name, _ in pipeline.named_parameters()}
    assert torch.equal(pipeline.transformer.proj_out.weight, before)


def test_a_request_gets_a_video_and_the_time_of_each_stage(worker: Any, pipeline: Any) -> None:
    output = _serve(worker, _request())
    frames = output.media.video.tensor if getattr(output, "media", None) is not None else output.output
    assert frames.shape == (1, 3, 5, 32, 32)
    assert frames.abs().max() <= 1.0
    assert set(output.stage_durations) == STAGES
    assert all(seconds > 0 for seconds in output.stage_durations.values())
    assert output.trajectory_latents is None


def test_latents_come_in_place_of_a_video_or_beside_it(worker: Any, pipeline: Any) -> None:
    instead = _serve(worker, _request(output_type="latent")).output
    beside = _latents(worker)
    assert instead.shape == SHAPE
    assert torch.equal(instead, beside)
    assert pipeline.latents_sha256 == sha256(beside.contiguous().numpy().tobytes()).hexdigest()


@pytest.mark.parametrize("switch", ["0", "1"])
def test_ranks_are_compared_where_the_switch_says_so(
    switch: str, worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omni_neuron.wan22.pipelines import text_to_video

    monkeypatch.setenv("OMNI_NEURON_CHECK_RANKS", switch)
    compared: list[tuple[torch.Tensor, bool]] = []
    monkeypatch.setattr(
        text_to_video,
        "check_rank_agreement",
        lambda name, latents, group, *, enabled: compared.append((latents, enabled)),
    )
    made = _latents(worker)
    ((latents, enabled),) = compared
    assert torch.equal(latents, made)
    assert enabled == (switch == "1")


def test_a_rank_that_does_not_decode_gives_an_empty_tensor(
    worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NeuronWanPipeline, "_decodes", False)
    output = _serve(worker, _request())
    assert output.output.shape == (1, 0)
    assert getattr(output, "media", None) is None


def test_noise_is_fp32_on_the_host_and_follows_the_generator(pipeline: Any) -> None:
    def noise(seed: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        latents: torch.Tensor = pipeline.prepare_latents(
            1, 16, 32, 32, 5, torch.bfloat16, None, generator, None
        )
        return latents

    assert noise(1).dtype == torch.float32
    assert noise(1).shape == SHAPE
    assert torch.equal(noise(1), torch.randn(SHAPE, generator=torch.Generator().manual_seed(1)))
    assert not torch.equal(noise(1), noise(2))


def test_latents_of_the_request_are_the_start_or_refused(worker: Any, pipeline: Any) -> None:
    start = torch.randn(SHAPE, generator=torch.Generator().manual_seed(3))
    assert torch.equal(_latents(worker, latents=start), _latents(worker, seed=3))
    with pytest.raises(InputError, match=r"\(1, 16, 2, 4, 6\)"):
        pipeline.prepare_latents(1, 16, 32, 32, 5, None, None, None, torch.zeros(1, 16, 2, 4, 6))


def test_several_outputs_are_the_videos_of_their_noise(worker: Any) -> None:
    start = torch.randn((2, *SHAPE[1:]), generator=torch.Generator().manual_seed(3))
    both = _latents(worker, latents=start, num_outputs_per_prompt=2)
    assert both.shape == start.shape
    for made, noise in zip(both, start, strict=True):
        alone = _latents(worker, latents=noise[None])[0]
        assert (made - alone).norm() / alone.norm() <= FP32_BAR  # a larger batch may add in another order
    drawn = _serve(worker, _request(num_outputs_per_prompt=2, output_type="latent")).output
    assert drawn.shape == start.shape
    assert not torch.equal(drawn[0], drawn[1])
    with pytest.raises(InputError, match=r"num_outputs_per_prompt 2 needs \(2, 16, 2, 4, 4\)"):
        _latents(worker, latents=start[:1], num_outputs_per_prompt=2)


@pytest.mark.parametrize(
    "said",
    [
        {"prompt": {"prompt": "a red ball", "negative_prompt": "grey"}, "guidance_scale": 4.0},
        {"extra_args": {"flow_shift": 12.0}},
        {"guidance_scale": 1.0, "guidance_scale_2": 4.0},
        {"guidance_scale": 4.0, "guidance_scale_2": 1.0},
        {"boundary_ratio": 0.0},
    ],
    ids=lambda said: "+".join(said),
)
def test_what_a_request_says_changes_its_latents(said: dict[str, Any], worker: Any) -> None:
    """The right change is measured beside diffusers, through the whole engine."""
    plain = {"prompt": "a red ball", "guidance_scale": said.get("guidance_scale", 1.0)}
    if "guidance_scale_2" in said:
        plain = {**said, "guidance_scale": 1.0, "guidance_scale_2": 1.0}
    assert not torch.equal(_latents(worker, **{**plain, **said}), _latents(worker, **plain))


@pytest.mark.parametrize(
    ("scales", "runs"), [((4.0, 1.0), [2, 1]), ((1.0, 4.0), [1, 2]), ((1.0, 1.0), [1, 1])]
)
def test_each_scale_guides_the_expert_of_its_noise(
    scales: tuple[float, float], runs: list[int], worker: Any, pipeline: Any
) -> None:
    """Two steps, one for each expert; a guided one runs for both prompts."""
    calls = {"transformer": 0, "transformer_2": 0}

    def count(name: str) -> Any:
        def hook(*_: Any) -> None:
            calls[name] += 1

        return getattr(pipeline, name).register_forward_pre_hook(hook)

    hooks = [count(name) for name in calls]
    try:
        _latents(worker, guidance_scale=scales[0], guidance_scale_2=scales[1])
    finally:
        for hook in hooks:
            hook.remove()
    assert list(calls.values()) == runs


def test_the_decoder_gets_latents_with_the_mean_and_deviation_of_their_channels(
    worker: Any, pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[torch.Tensor] = []

    def decode(z: torch.Tensor, return_dict: bool) -> tuple[torch.Tensor]:
        given.append(z)
        return (z,)

    monkeypatch.setattr(pipeline.vae, "decode", decode)
    latents = torch.randn(SHAPE, generator=torch.Generator().manual_seed(0))
    pipeline._decode(latents)
    config = pipeline.vae.config
    for channel, (mean, std) in enumerate(zip(config.latents_mean, config.latents_std, strict=True)):
        expected = latents[:, channel] * std + mean
        torch.testing.assert_close(given[0][:, channel], expected, rtol=1e-6, atol=1e-6)


def test_an_attention_backend_for_one_role_changes_the_latents_within_rounding(make_worker: Any) -> None:
    """Without guidance, which multiplies the rounding of either arithmetic by up to 2 * scale - 1."""
    made = {}
    for name, roles in (("default", {}), ("cross", {"cross": "FLASH_ATTN"})):
        worker = make_worker(diffusion_attention_config={"per_role": roles})
        made[name] = _latents(worker, num_inference_steps=4, guidance_scale=1.0)
    assert not torch.equal(made["cross"], made["default"])  # the other arithmetic did run
    assert (made["cross"] - made["default"]).norm() / made["default"].norm() <= FP32_BAR


def test_the_boundary_is_the_requests_else_the_configurations_else_the_checkpoints(
    make_worker: Any,
) -> None:
    pipeline = make_worker().model_runner.pipeline
    checkpoint = pipeline.checkpoint.boundary_ratio
    assert checkpoint is not None
    assert pipeline._boundary_timestep(None) == checkpoint * 1000
    assert pipeline._boundary_timestep(0.5) == 500
    pipeline.boundary_ratio = 0.25
    assert pipeline._boundary_timestep(None) == 250
    assert pipeline._boundary_timestep(0.5) == 500


@pytest.mark.parametrize(("boundary", "used"), [(1.0, "transformer_2"), (0.0, "transformer")])
def test_with_one_expert_left_it_serves_every_step(boundary: float, used: str, make_worker: Any) -> None:
    worker = make_worker(boundary_ratio=boundary)
    pipeline = worker.model_runner.pipeline
    assert pipeline._experts == [getattr(pipeline, used)]
    calls: list[int] = []
    getattr(pipeline, used).register_forward_pre_hook(lambda *_: calls.append(1))
    _serve(worker, _request(guidance_scale=1.0, num_inference_steps=3))
    assert len(calls) == 3


def test_a_warm_up_runs_every_component_once_at_its_size(make_worker: Any) -> None:
    pipeline = make_worker().model_runner.pipeline
    runs: dict[str, list[Any]] = {"transformer": [], "transformer_2": [], "encoder": [], "vae": []}

    def note(name: str) -> Any:
        return lambda module, args, kwargs: runs[name].append([tuple(a.shape) for a in args])

    for name in ("transformer", "transformer_2"):
        getattr(pipeline, name).register_forward_pre_hook(note(name), with_kwargs=True)
    pipeline.text_encoder.encoder.register_forward_pre_hook(note("encoder"), with_kwargs=True)
    decode = pipeline.vae.decode
    pipeline.vae.decode = lambda z, **options: runs["vae"].append(tuple(z.shape)) or decode(z, **options)
    with torch.inference_mode():
        pipeline.warm_up(**SIZE)
    # Guidance on one rank runs an expert for either branch, the encoder for either prompt.
    assert {name: len(calls) for name, calls in runs.items()} == {
        "transformer": 2,
        "transformer_2": 2,
        "encoder": 2,
        "vae": 1,
    }
    assert runs["vae"] == [SHAPE]
    assert {shapes[0] for shapes in runs["transformer"]} == {SHAPE}


@pytest.mark.parametrize("fails", [False, True])
def test_experts_leave_the_device_during_decoding_and_return_also_after_a_failure(
    fails: bool, make_worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = make_worker().model_runner.pipeline
    log: list[str] = []

    @contextmanager
    def recorded(modules: Any, host: torch.device) -> Iterator[None]:
        assert list(modules) == [pipeline.transformer, pipeline.transformer_2]
        log.append("leave")
        try:
            yield
        finally:
            log.append("return")

    def decode(z: torch.Tensor, return_dict: bool) -> tuple[torch.Tensor]:
        log.append("decode")
        if fails:
            raise RuntimeError("no memory")
        return (z,)

    monkeypatch.setattr(text_to_video, "offloaded", recorded)
    monkeypatch.setattr(text_to_video, "needs_offload", lambda device: True)
    pipeline.vae.decode = decode
    if fails:
        with pytest.raises(RuntimeError, match="no memory"):
            pipeline._decode(torch.zeros(SHAPE))
    else:
        pipeline._decode(torch.zeros(SHAPE))
    assert log == ["leave", "decode", "return"]


@pytest.mark.parametrize(("name", "dtype"), [("bfloat16", torch.bfloat16), (None, torch.float32)])
def test_the_payload_of_sums_reaches_the_models(
    name: str | None, dtype: torch.dtype, make_worker: Any
) -> None:
    pipeline = make_worker(model_config={"tp_reduce_dtype": name}).model_runner.pipeline
    assert pipeline.parallel.tp_reduce_dtype == dtype
