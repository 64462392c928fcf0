from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors import safe_open
from vllm_omni.diffusion.config import set_current_diffusion_config

from omni_neuron.distributed.errors import CheckpointError
from omni_neuron.distributed.groups import ParallelContext
from omni_neuron.wan22.checkpoint.tiny import TinyGeometry, build_checkpoint
from omni_neuron.wan22.pipelines.components import META, WanComponents, build_components, load_components


@pytest.fixture(scope="module")
def world(make_worker: Any) -> Any:
    """A configuration in a live world of one rank."""
    return make_worker(skip_load_model=True).od_config


@pytest.fixture(scope="module")
def one_expert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one_expert")
    build_checkpoint(folder, TinyGeometry(two_experts=False))
    return folder


def _built(config: Any, **fields: Any) -> WanComponents:
    chosen = SimpleNamespace(
        model=fields.get("model", config.model),
        dtype=fields.get("dtype", torch.float32),
        boundary_ratio=fields.get("boundary_ratio"),
    )
    with set_current_diffusion_config(config):
        return build_components(chosen, ParallelContext.single_rank())


def _pipeline(parts: WanComponents) -> Any:
    pipeline = torch.nn.Module()
    for name in ("text_encoder", "transformer", "transformer_2", "vae", "checkpoint"):
        setattr(pipeline, name, getattr(parts, name))
    return pipeline


def test_nothing_is_allocated_before_weights_arrive(world: Any) -> None:
    parts = _built(world)
    for module in (parts.transformer, parts.transformer_2, parts.text_encoder, parts.vae):
        assert module is not None
        assert {parameter.device for parameter in module.parameters()} == {META}


@pytest.mark.parametrize(
    ("boundary", "high", "low"),
    [(None, True, True), (0.5, True, True), (1.0, False, True), (0.0, True, False)],
)
def test_only_experts_that_the_boundary_leaves_a_use_for_are_built(
    boundary: float | None, high: bool, low: bool, world: Any
) -> None:
    parts = _built(world, boundary_ratio=boundary)
    assert (parts.transformer is not None, parts.transformer_2 is not None) == (high, low)


@pytest.mark.parametrize("boundary", [None, 0.0, 1.0])
def test_a_checkpoint_with_one_expert_has_one_whatever_the_boundary(
    boundary: float | None, world: Any, one_expert: Path
) -> None:
    parts = _built(world, model=str(one_expert), boundary_ratio=boundary)
    assert parts.transformer is not None
    assert parts.transformer_2 is None


def test_every_parameter_is_filled_from_its_own_component(world: Any) -> None:
    pipeline = _pipeline(_built(world))
    load_components(pipeline)
    assert all(tensor.device.type == "cpu" for tensor in pipeline.state_dict().values())
    for name in ("transformer", "transformer_2"):
        file = pipeline.checkpoint.folder / name / "diffusion_pytorch_model.safetensors"
        with safe_open(file, "pt") as tensors:
            expected = tensors.get_tensor("proj_out.weight")
        assert torch.equal(getattr(pipeline, name).proj_out.weight, expected)


def test_weights_take_the_dtype_of_the_configuration_where_the_policy_lets_them(world: Any) -> None:
    pipeline = _pipeline(_built(world, dtype=torch.bfloat16))
    load_components(pipeline)
    assert pipeline.text_encoder.dtype == torch.bfloat16
    assert pipeline.transformer.proj_out.weight.dtype == torch.bfloat16
    assert pipeline.transformer.scale_shift_table.dtype == torch.float32
    assert pipeline.vae.dtype == torch.bfloat16


def test_a_checkpoint_that_lacks_a_tensor_is_refused_by_its_name(world: Any, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    build_checkpoint(tmp_path, TinyGeometry())
    file = tmp_path / "transformer_2" / "diffusion_pytorch_model.safetensors"
    tensors = load_file(file)
    del tensors["proj_out.bias"]
    save_file(tensors, file)
    with pytest.raises(CheckpointError, match=r"proj_out\.bias"):
        load_components(_pipeline(_built(world, model=str(tmp_path))))
