"""Real components of the tiny checkpoint through torch.compile, by a backend that counts and computes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._dynamo.backends.registry import _COMPILER_FNS, register_backend

SIZE = {"height": 32, "width": 32, "num_frames": 9}
LATENTS = (1, 16, 3, 4, 4)
COMMON = {"--auto-cast=none", "-O1", "--hbm-scratchpad-page-size=2048"}
TRANSFORMER = {"--model-type=transformer", *COMMON}
DECODER = {"--model-type=unet-inference", "--internal-max-instruction-limit=15000000", *COMMON}
ARGUMENTS = {
    "wan_transformer": TRANSFORMER,
    "wan_transformer_2": TRANSFORMER,
    "umt5_encoder": TRANSFORMER,
    "wan_vae_decoder": DECODER,
}
BACKEND = "counts_graphs"


@pytest.fixture(scope="module")
def graphs() -> Iterator[list[dict[str, Any]]]:
    """The options of every graph that was compiled."""
    compiled: list[dict[str, Any]] = []

    def compile_graph(
        graph: torch.fx.GraphModule, inputs: list[torch.Tensor], *, options: dict[str, Any]
    ) -> Callable[..., Any]:
        compiled.append(options)
        return graph.forward

    register_backend(compile_graph, name=BACKEND)
    torch._dynamo.reset()
    yield compiled
    torch._dynamo.reset()
    del _COMPILER_FNS[BACKEND]


def _outputs(pipeline: Any) -> list[torch.Tensor]:
    """What each component makes of fixed inputs."""
    generator = torch.Generator().manual_seed(0)
    latents = torch.randn(LATENTS, generator=generator)
    text, _ = pipeline.encode_prompt("a red ball")
    inputs = {"hidden_states": latents, "timestep": torch.tensor([500]), "encoder_hidden_states": text}
    experts = (pipeline.transformer, pipeline.transformer_2)
    made = [pipeline.predict_noise(current_model=expert, **inputs) for expert in experts]
    return [text, *made, pipeline._decode(latents)]


@pytest.fixture(scope="module")
def compiled(make_worker: Any, graphs: list[dict[str, Any]]) -> tuple[Any, list[torch.Tensor]]:
    """A pipeline after compilation and warm-up, and what it made before."""
    pipeline = make_worker().model_runner.pipeline
    with torch.inference_mode():
        before = _outputs(pipeline)
        pipeline.compile_components(BACKEND)
        assert graphs == []  # nothing is traced before it runs
        pipeline.warm_up(**SIZE)
    return pipeline, before


def test_the_warm_up_compiles_every_component_once(
    compiled: tuple[Any, list[torch.Tensor]], graphs: list[dict[str, Any]]
) -> None:
    assert sorted(options["model_name"] for options in graphs) == sorted(ARGUMENTS)


def test_each_component_gets_the_compiler_arguments_that_suit_it(
    compiled: tuple[Any, list[torch.Tensor]], graphs: list[dict[str, Any]]
) -> None:
    for options in graphs:
        assert set(options["compiler_args"]) == ARGUMENTS[options["model_name"]]
        assert len(options["compiler_args"]) == len(ARGUMENTS[options["model_name"]])


def test_a_request_after_the_warm_up_compiles_nothing_and_gets_the_same_values(
    compiled: tuple[Any, list[torch.Tensor]], graphs: list[dict[str, Any]]
) -> None:
    pipeline, before = compiled
    with torch.inference_mode():
        after = _outputs(pipeline)
    assert len(graphs) == len(ARGUMENTS)
    for compiled_value, value in zip(after, before, strict=True):
        assert (compiled_value - value).norm() / value.norm() <= 1e-6


def test_the_compilers_working_folder_follows_the_root_of_the_caches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from omni_neuron.wan22.pipelines import compile as pipeline_compile

    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(
        pipeline_compile.torch, "compile", lambda function, **options: seen.append(options) or function
    )
    for root in ("", "/caches"):
        monkeypatch.setenv("VLLM_CACHE_ROOT", root)
        pipeline_compile._compiled(len, "any", "wan_transformer", [])
    assert "compiler_workdir" not in seen[0]["options"]
    assert seen[1]["options"]["compiler_workdir"] == "/caches/neuron/compiler/wan_transformer"
    assert [options["fullgraph"] for options in seen] == [True, True]


def test_the_exchange_of_guidance_branches_is_compiled_too(compiled: tuple[Any, list[torch.Tensor]]) -> None:
    pipeline, _ = compiled
    assert pipeline.gather_guidance._torchdynamo_orig_callable is type(pipeline).gather_guidance


def test_debugging_allows_graph_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    from omni_neuron.wan22.pipelines import compile as pipeline_compile

    monkeypatch.setenv("VLLM_NEURON_DEBUG_MODE", "1")
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(
        pipeline_compile.torch, "compile", lambda function, **options: seen.append(options) or function
    )
    pipeline_compile._compiled(len, "any", "wan_transformer", [])
    assert seen[0]["fullgraph"] is False


def test_guidance_gets_the_compiler_arguments_of_a_transformer(monkeypatch: pytest.MonkeyPatch) -> None:
    from omni_neuron.wan22.pipelines import compile as pipeline_compile

    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(
        pipeline_compile.torch, "compile", lambda function, **options: seen.append(options) or function
    )
    assert pipeline_compile.compile_guidance(len, BACKEND) is len
    (options,) = (call["options"] for call in seen)
    assert seen[0]["backend"] == BACKEND
    assert options["model_name"] == "wan_guidance"
    assert set(options["compiler_args"]) == TRANSFORMER
