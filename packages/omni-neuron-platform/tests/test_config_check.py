from types import SimpleNamespace
from typing import Any

import pytest
from torch import nn
from vllm_omni.diffusion.attention.layer import Attention
from vllm_omni.diffusion.data import (
    AttentionConfig,
    OmniDiffusionConfig,
    SkipSoftmaxSpec,
    parse_attention_config,
)

from omni_neuron.platform import config_check
from omni_neuron.platform.config_check import check_config, refuse_stock_context_parallelism
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.mode import Mode, ModeKind


def _config(**fields: Any) -> OmniDiffusionConfig:
    parallel = fields.pop("parallel_config", {})
    config = OmniDiffusionConfig(model=None, model_class_name="WanPipeline", parallel_config=parallel)
    for name, value in fields.items():
        setattr(config, name, value)
    return config


def test_the_engines_own_defaults_pass() -> None:
    check_config(_config())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cache_backend", "cache_dit"),
        ("enable_cpu_offload", True),
        ("enable_layerwise_offload", True),
        ("enable_prompt_embed_cache", True),
        ("enable_sleep_mode", True),
        ("step_execution", True),
        ("streaming_output", True),
        ("vae_use_tiling", True),
        ("vae_use_slicing", True),
        ("quantization_config", "fp8"),
        ("diffusion_kv_cache_dtype", "fp8"),
        ("lora_path", "/adapter"),
    ],
)
def test_a_feature_that_is_not_there_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"{name} is {value!r}"):
        check_config(_config(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allgather_degree", 2),
        ("pipeline_parallel_size", 2),
        ("data_parallel_size", 2),
        ("vae_patch_parallel_size", 2),
    ],
)
def test_a_parallel_degree_that_is_not_there_is_refused_by_name(name: str, value: int) -> None:
    with pytest.raises(InputError, match=f"{name} is {value}"):
        check_config(_config(parallel_config={name: value}))


def test_ranks_that_compile_nothing_are_refused_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    config = _config(enforce_eager=True, parallel_config={"tensor_parallel_size": 2})
    check_config(config)
    monkeypatch.setattr(config_check, "detect_mode", lambda: Mode(ModeKind.HARDWARE, "a test"))
    with pytest.raises(InputError, match="enforce_eager is true with 2 ranks"):
        check_config(config)
    check_config(_config(enforce_eager=True))


def test_more_than_two_guidance_ranks_are_refused() -> None:
    with pytest.raises(InputError, match="cfg_parallel_size is 3"):
        check_config(_config(parallel_config={"cfg_parallel_size": 3}))


def test_tensor_capture_is_refused() -> None:
    with pytest.raises(InputError, match="tensor_capture"):
        check_config(_config(model_config={"tensor_capture": {"modules": ["blocks.0"]}}))


@pytest.mark.parametrize("attention", [{"default": "SAGE_ATTN"}, {"per_role": {"cross": "SAGE_ATTN"}}])
def test_an_attention_backend_of_other_hardware_is_refused_before_a_model_is_built(
    attention: dict[str, Any],
) -> None:
    with pytest.raises(InputError, match="SAGE_ATTN"):
        check_config(_config(diffusion_attention_config=AttentionConfig(**attention)))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"tp_reduce_dtype": "fp8"}, "tp_reduce_dtype is .fp8. in the engine.s configuration: it must be"),
        ({"ring_attention": "false"}, 'ring_attention is "false" .* must be true or false'),
        ({"ring_attention": True}, "ring_degree is 1, so there is no ring"),
        ({"placement": "0,2"}, 'placement of the engine.s configuration is "0,2"'),
        ({"placement": [0, 1]}, "placement is .* comma-separated list"),
    ],
)
def test_settings_of_the_model_have_the_rules_of_stage_files(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_config(_config(model_config=settings, parallel_config={"ulysses_degree": 2}))


def test_settings_that_fit_or_belong_to_another_pipeline_pass() -> None:
    ours = {"tp_reduce_dtype": "bfloat16", "ring_attention": True, "placement": "1,0"}
    check_config(_config(model_config={**ours, "other": 1}, parallel_config={"ring_degree": 2}))
    check_config(_config(model_config=dict.fromkeys(ours)))


def test_a_backend_for_self_attention_that_a_ring_would_not_use_is_refused() -> None:
    ring = {"model_config": {"ring_attention": True}, "parallel_config": {"ring_degree": 2}}
    check_config(
        _config(diffusion_attention_config=AttentionConfig(per_role={"cross": "FLASH_ATTN"}), **ring)
    )
    config = _config(diffusion_attention_config=AttentionConfig(per_role={"self": "FLASH_ATTN"}), **ring)
    with pytest.raises(InputError, match="backend of self is FLASH_ATTN, but ring_attention is true"):
        check_config(config)
    config.model_config = {"ring_attention": False}
    check_config(config)


def test_the_variable_chooses_the_default_and_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIFFUSION_ATTENTION_BACKEND", "FLASH_ATTN")
    config = _config()
    assert config.diffusion_attention_config.default.backend == "FLASH_ATTN"
    check_config(config)
    monkeypatch.setenv("DIFFUSION_ATTENTION_BACKEND", "SAGE_ATTN")
    with pytest.raises(InputError, match="SAGE_ATTN"):
        check_config(_config())


def test_the_flag_chooses_the_default_and_goes_before_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIFFUSION_ATTENTION_BACKEND", "SAGE_ATTN")
    flag = parse_attention_config(None, attention_backend="FLASH_ATTN")
    config = OmniDiffusionConfig(model=None, model_class_name="WanPipeline", diffusion_attention_config=flag)
    assert config.diffusion_attention_config.default.backend == "FLASH_ATTN"
    check_config(config)


def test_options_of_a_backend_that_would_be_ignored_are_refused_before_a_model_is_built() -> None:
    attention = AttentionConfig(per_role={"cross": "TORCH_SDPA"})
    attention.per_role["cross"].skip_softmax = SkipSoftmaxSpec(threshold=0.5)
    with pytest.raises(InputError, match=r"TORCH_SDPA of cross .*skip_softmax_threshold.*no effect"):
        check_config(_config(diffusion_attention_config=attention))


class StockAttention(nn.Module):
    def __init__(self, skip: bool) -> None:
        super().__init__()
        self.site = Attention(2, 8, causal=False, softmax_scale=1.0, skip_sequence_parallel=skip)


def test_the_stock_ring_is_refused_with_its_site() -> None:
    parallel = SimpleNamespace(sequence_parallel_size=2, ring_degree=2)
    with pytest.raises(InputError, match=r"ulysses_degree x ring_degree is 2, but site of StockAttention"):
        refuse_stock_context_parallelism(
            StockAttention(skip=False), SimpleNamespace(parallel_config=parallel)
        )
    refuse_stock_context_parallelism(StockAttention(skip=True), SimpleNamespace(parallel_config=parallel))
    alone = SimpleNamespace(sequence_parallel_size=1, ring_degree=1)
    refuse_stock_context_parallelism(StockAttention(skip=False), SimpleNamespace(parallel_config=alone))


def test_a_pipeline_without_the_engines_attention_may_use_context_parallelism() -> None:
    config = SimpleNamespace(parallel_config=SimpleNamespace(sequence_parallel_size=2, ring_degree=2))
    refuse_stock_context_parallelism(nn.Linear(2, 2), config)
