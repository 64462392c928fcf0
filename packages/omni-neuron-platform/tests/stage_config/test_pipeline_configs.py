"""What vLLM-Omni itself makes of the files that we write."""

from __future__ import annotations

import dataclasses
import json

import pytest

from omni_neuron.platform.config_check import check_config
from omni_neuron.platform.registry import PipelineEntry
from omni_neuron.platform.stage_config import WARM_UP_KEY, StageConfig, write_deploy_file
from omni_neuron.platform.stage_config.key import STAGE
from omni_neuron.platform.stage_config.pipeline_configs import pipeline_config, register_pipeline_configs
from omni_neuron.platform.stage_config.table import by_place

ARCHITECTURE = "WanProbePipeline"  # no pipeline of vLLM-Omni's own answers to it
SIZE = {"height": 64, "width": 64, "num_frames": 5}
ENTRIES = [PipelineEntry(ARCHITECTURE, "package.module", "NeuronProbePipeline", "pre", "post", SIZE)]
VALUES = {
    "tensor_parallel_size": 2,
    "ring_degree": 2,
    "cfg_parallel_size": 2,
    "devices": tuple(range(8, 16)),
    "dtype": "float32",
    "distributed_executor_backend": "mp",
    "trust_remote_code": True,
    "boundary_ratio": 0.7,
    "flow_shift": 3.0,
    "enforce_eager": True,
    "diffusion_load_format": "dummy",
    "worker_extension_cls": "a.Extension",
    "custom_pipeline_args.pipeline_class": "a.Pipeline",
    "diffusion_attention_config.default": "TORCH_SDPA",
    "diffusion_attention_config.per_role": {"cross": "FLASH_ATTN"},
    "skip_warmup": False,
    "env": {"A": "b"},
    "height": 64,
    "width": 96,
    "num_frames": 17,
    "num_inference_steps": 3,
    "guidance_scale": 4.0,
    "guidance_scale_2": 2.0,
    "seed": 5,
    "fps": 16.0,
}


# What a diffusion stage can never have.
OF_LANGUAGE_MODELS = {
    "enable_prefix_caching",
    "enable_chunked_prefill",
    "custom_voice_dir",
    "default_pooling_params",
    "subtalker_sampling_params",
    "silence_ban_frames",
    "gpu_memory_utilization",
    "max_num_batched_tokens",
    "max_model_len",
    "async_scheduling",
    "disable_hybrid_kv_cache_manager",
    "mm_processor_cache_gb",
    "mamba_ssm_cache_dtype",
    "skip_mm_profiling",
    "enable_flashinfer_autotune",
    "config_format",
    "tokenizer_mode",
    "tts_max_instructions_length",
}


@pytest.fixture
def registered():
    from vllm_omni.config.pipeline_registry import OMNI_PIPELINES

    before = dict(OMNI_PIPELINES)
    register_pipeline_configs(ENTRIES)
    yield OMNI_PIPELINES
    OMNI_PIPELINES.clear()
    OMNI_PIPELINES.update(before)


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model_index.json").write_text(json.dumps({"_class_name": ARCHITECTURE}))
    return folder


def resolve(model, deploy_config, monkeypatch):
    """Its processes' settings, its metadata and the diffusion configuration, as the engine makes them."""
    from vllm_omni.config.resolver import resolve_omni_config
    from vllm_omni.engine import stage_init_utils
    from vllm_omni.platforms import current_omni_platform

    control = current_omni_platform.device_control_env_var
    monkeypatch.setenv(control, ",".join(map(str, range(16))))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    stage = resolve_omni_config(
        str(model),
        trust_remote_code=None,
        deploy_config_path=str(deploy_config),
        cli_overrides={},
        stage_overrides=None,
        strategy_config_path=None,
    ).stage_configs[0]
    if dataclasses.is_dataclass(stage):
        metadata = stage_init_utils.extract_stage_metadata_from_omni_stage_config(stage)
        runtime = stage.runtime_config
    else:  # 0.29 keeps a mapping
        metadata = stage_init_utils.extract_stage_metadata(stage)
        runtime = stage.runtime
    return runtime, metadata, stage_init_utils.build_diffusion_config(str(model), stage, metadata)


def test_every_setting_reaches_the_place_where_it_acts(registered, checkpoint, tmp_path, monkeypatch):
    path = write_deploy_file(StageConfig(VALUES), checkpoint, tmp_path / "deploy.yaml", ENTRIES)
    runtime, metadata, od_config = resolve(checkpoint, path, monkeypatch)

    check_config(od_config)  # nothing that a file may say is refused later
    assert metadata.final_output_type == "video"
    assert od_config.model_class_name == ARCHITECTURE
    layout = od_config.parallel_config
    assert (layout.tensor_parallel_size, layout.ring_degree, layout.cfg_parallel_size) == (2, 2, 2)
    assert layout.world_size == 8
    assert runtime.devices == "8,9,10,11,12,13,14,15"
    assert runtime.env == {"A": "b"}
    assert str(od_config.dtype) == "torch.float32"
    plain = (
        "distributed_executor_backend",
        "trust_remote_code",
        "boundary_ratio",
        "flow_shift",
        "enforce_eager",
        "diffusion_load_format",
        "worker_extension_cls",
    )
    assert {name: getattr(od_config, name) for name in plain} == {name: VALUES[name] for name in plain}
    assert od_config.custom_pipeline_args == {"pipeline_class": "a.Pipeline"}
    assert od_config.diffusion_attention_config.default.backend == "TORCH_SDPA"
    assert od_config.diffusion_attention_config.per_role["cross"].backend == "FLASH_ATTN"
    assert od_config.additional_config[WARM_UP_KEY] == {"height": 64, "width": 96, "num_frames": 17}
    requests = StageConfig(VALUES).request_defaults
    assert {name: getattr(metadata.default_sampling_params, name) for name in requests} == requests


def test_a_file_without_a_pipeline_is_not_dropped(registered, checkpoint, tmp_path, monkeypatch):
    path = tmp_path / "deploy.yaml"
    path.write_text("stages:\n- stage_id: 0\n  boundary_ratio: 0.7\n")
    _, _, od_config = resolve(checkpoint, path, monkeypatch)
    assert od_config.boundary_ratio == 0.7


def test_registering_again_changes_nothing(registered):
    before = dict(registered)
    register_pipeline_configs(ENTRIES)
    assert registered == before
    assert registered[f"omni_neuron_{ARCHITECTURE}"] == pipeline_config(ARCHITECTURE)


def test_every_setting_that_the_engine_declares_is_in_the_table():
    from vllm_omni.config.stage_config import DeployConfig, StageDeployConfig
    from vllm_omni.diffusion.data import DiffusionParallelConfig

    known = set(by_place(STAGE))
    whole_file = {field.name for field in dataclasses.fields(DeployConfig)} - {STAGE}
    degrees = {f"{STAGE}.{field.name}" for field in dataclasses.fields(DiffusionParallelConfig)}
    blocks = {
        "engine_extras",
        "custom_pipeline_args",
        "default_sampling_params",
        "diffusion_attention_config",
    }
    of_stage = {
        f"{STAGE}.{field.name}" for field in dataclasses.fields(StageDeployConfig) if field.name not in blocks
    }
    unknown = {place.removeprefix(f"{STAGE}.") for place in (whole_file | degrees | of_stage) - known}
    assert sorted(unknown - OF_LANGUAGE_MODELS) == []
