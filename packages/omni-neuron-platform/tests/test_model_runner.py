from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from vllm_omni.diffusion.forward_context import set_forward_context
from vllm_omni.inputs.data import OmniDiffusionSamplingParams
from vllm_omni.platforms import current_omni_platform

from omni_neuron.platform.model_runner import NeuronDiffusionModelRunner
from omni_neuron.platform.stage_config import WARM_UP_KEY
from omni_neuron.runtime.errors import InputError

SIZE = {"height": 64, "width": 64, "num_frames": 5}


class Pipeline(nn.Module):
    """What a third party may bring: weights of its own, no method of ours."""

    def __init__(self, *, od_config: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.weights_sources: list[Any] = []
        self.log: list[Any] = []

    def load_weights(self, weights: Any) -> set[str]:
        assert list(weights) == []
        return {"weight"}

    def to(self, *args: Any, **kwargs: Any) -> Any:
        self.log.append("to")
        return super().to(*args, **kwargs)


class CompiledPipeline(Pipeline):
    def compile_components(self, backend: str) -> None:
        self.log.append(("compile", backend))

    def warm_up(self, **size: int) -> None:
        self.log.append(("warm up", size, torch.is_inference_mode_enabled()))


def _load(worker: Any, pipeline: type[nn.Module]) -> Any:
    with set_forward_context(vllm_config=worker.vllm_config, omni_diffusion_config=worker.od_config):
        worker.model_runner.load_model(load_format="custom_pipeline", custom_pipeline_name=pipeline)
    return worker.model_runner.pipeline


@pytest.fixture
def worker(make_worker: Any) -> Any:
    return make_worker()


def test_the_worker_uses_it(worker: Any) -> None:
    assert type(worker.model_runner) is NeuronDiffusionModelRunner


def test_dummy_loads_nothing_because_a_custom_pipeline_follows(worker: Any) -> None:
    worker.model_runner.load_model(load_format="dummy")
    assert worker.model_runner.pipeline is None
    worker.load_model(load_format="custom_pipeline", custom_pipeline_name=Pipeline)
    assert type(worker.model_runner.pipeline) is Pipeline


def test_in_cpu_mode_a_custom_pipeline_runs_uncompiled(worker: Any) -> None:
    pipeline = _load(worker, CompiledPipeline)
    assert pipeline.log == ["to"]


def test_with_a_backend_it_is_moved_then_compiled_then_warmed_up(
    make_worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(current_omni_platform, "get_compile_backend", lambda: "any_backend")
    worker = make_worker(additional_config={WARM_UP_KEY: SIZE})
    pipeline = _load(worker, CompiledPipeline)
    assert pipeline.log == ["to", ("compile", "any_backend"), ("warm up", SIZE, True)]


def test_enforce_eager_compiles_nothing(make_worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_omni_platform, "get_compile_backend", lambda: "any_backend")
    assert _load(make_worker(enforce_eager=True), CompiledPipeline).log == ["to"]


def test_a_pipeline_that_cannot_be_compiled_is_refused(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_omni_platform, "get_compile_backend", lambda: "any_backend")
    with pytest.raises(InputError, match=r"Pipeline cannot be compiled.*enforce_eager"):
        _load(worker, Pipeline)


def test_a_warm_up_that_a_pipeline_does_not_have_is_refused(make_worker: Any) -> None:
    worker = make_worker(additional_config={WARM_UP_KEY: SIZE})
    with pytest.raises(InputError, match="skip_warmup is false, but Pipeline has no warm-up"):
        _load(worker, Pipeline)


def _device_runner() -> Any:
    """A runner whose device is no CPU; of it, the seeding of a request needs nothing else."""
    runner = NeuronDiffusionModelRunner.__new__(NeuronDiffusionModelRunner)
    runner.device = torch.device("meta")
    return runner


def _drawn(sampling: OmniDiffusionSamplingParams) -> torch.Tensor:
    assert isinstance(sampling.generator, torch.Generator)
    return torch.rand(3, generator=sampling.generator)


def test_a_seed_makes_a_generator_on_the_host_whatever_the_device() -> None:
    sampling = OmniDiffusionSamplingParams(seed=7)
    _device_runner()._initialize_generator(sampling)
    assert sampling.generator.device.type == "cpu"
    assert torch.equal(_drawn(sampling), torch.rand(3, generator=torch.Generator().manual_seed(7)))


def test_a_generator_of_the_caller_wins() -> None:
    generator = torch.Generator().manual_seed(1)
    sampling = OmniDiffusionSamplingParams(seed=7, generator=generator)
    _device_runner()._initialize_generator(sampling)
    assert sampling.generator is generator


def test_a_generator_device_of_the_caller_wins() -> None:
    sampling = SimpleNamespace(generator=None, seed=7, generator_device="elsewhere")
    with pytest.raises(RuntimeError, match="elsewhere"):  # torch is asked for that device, and has none
        _device_runner()._initialize_generator(sampling)
    assert sampling.generator_device == "elsewhere"


def test_without_a_seed_there_is_no_generator() -> None:
    sampling = OmniDiffusionSamplingParams()
    _device_runner()._initialize_generator(sampling)
    assert sampling.generator is None
