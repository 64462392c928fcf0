from __future__ import annotations

import json

import pytest
import yaml
from stage_file_helper import legacy, sample_of

from omni_neuron.platform.registry import PipelineEntry
from omni_neuron.platform.stage_config import (
    WARM_UP_KEY,
    StageConfig,
    read_stage_config,
    to_deploy_dict,
    write_deploy_file,
)
from omni_neuron.platform.stage_config.key import Key
from omni_neuron.platform.stage_config.table import TABLE
from omni_neuron.runtime.errors import InputError

SIZE = {"height": 480, "width": 832, "num_frames": 81}
ENTRIES = [
    PipelineEntry(arch, "package.module", "NeuronWanPipeline", "pre", "post", SIZE)
    for arch in ("WanPipeline", "Wan22Pipeline")
]
WAN, WAN22 = ENTRIES
SIZELESS = PipelineEntry("WanPipeline", "package.module", "AnyPipeline", "pre", "post")


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model_index.json").write_text(json.dumps({"_class_name": "WanPipeline"}))
    return folder


def test_the_old_form_becomes_the_new_one(files):
    config = files.read(
        legacy(
            {
                "model_class_name": "Wan22Pipeline",
                "dtype": "bf16",
                "boundary_ratio": 0.875,
                "skip_warmup": True,
                "parallel_config": {"tensor_parallel_size": 2, "ring_degree": 2},
            },
            stage_type="diffusion",
            runtime={"process": True, "devices": "0-3", "max_batch_size": 1},
            default_sampling_params={"seed": 7},
        )
    )
    assert to_deploy_dict(config, WAN22) == {
        "pipeline": "omni_neuron_Wan22Pipeline",
        "async_chunk": False,
        "dtype": "bfloat16",
        "stages": [
            {
                "stage_id": 0,
                "devices": "0,1,2,3",
                "model_class_name": "Wan22Pipeline",
                "boundary_ratio": 0.875,
                "parallel_config": {"tensor_parallel_size": 2, "ring_degree": 2},
                "default_sampling_params": {"seed": 7},
            }
        ],
    }


def test_nothing_set_still_names_pipeline_class_and_devices():
    document = to_deploy_dict(StageConfig(), WAN)
    assert document["pipeline"] == "omni_neuron_WanPipeline"
    assert document["stages"] == [{"stage_id": 0, "devices": "0", "model_class_name": "WanPipeline"}]


def test_contradictions_do_not_get_into_a_file():
    with pytest.raises(InputError, match="takes 2"):
        to_deploy_dict(StageConfig({"ring_degree": 2, "devices": (0,)}), WAN)


def test_what_is_written_reads_back_unchanged(files, checkpoint, tmp_path):
    samples = {"ring_degree": 2, "devices": (2, 3), "flow_shift": 3.0, "dtype": "float32", "seed": 1}
    samples |= {"model_class_name": "WanPipeline", "pipeline": "wan2_2_ti2v", "env": {"A": "b"}}
    samples |= {"diffusion_attention_config.per_role": {"cross": "TORCH_SDPA"}}
    path = write_deploy_file(StageConfig(samples), checkpoint, tmp_path / "deploy.yaml", ENTRIES)
    assert read_stage_config(path).values == {"stage_id": 0, **samples}


@pytest.mark.parametrize(
    "key",
    [e for e in TABLE if isinstance(e, Key) and e.name != "skip_warmup"],
    ids=lambda key: key.name,
)
def test_every_key_is_written_where_it_is_read(files, key):
    value = key.kind.parse(sample_of(key.name))
    document = to_deploy_dict(StageConfig({key.name: value}), WAN)
    if key.for_reader:
        assert key.name == "stage_id" or key.name not in str(document)
    else:
        assert files.read(document).values[key.name] == value


def test_a_warm_up_has_the_size_of_the_default_request():
    values = {"skip_warmup": False, "height": 64, "num_frames": 5}
    document = to_deploy_dict(StageConfig(values), WAN)
    size = {"height": 64, "width": 832, "num_frames": 5}
    assert document["stages"][0]["additional_config"] == {WARM_UP_KEY: size}


def test_a_warm_up_without_a_size_is_refused():
    config = StageConfig({"skip_warmup": False, "height": 64}, "f.yaml")
    with pytest.raises(InputError, match=r"f\.yaml is false, .* no default for width and num_frames"):
        to_deploy_dict(config, SIZELESS)


@pytest.mark.parametrize("values", [{}, {"skip_warmup": True}])
def test_no_warm_up_unless_asked_for(values):
    assert "additional_config" not in to_deploy_dict(StageConfig(values), WAN)["stages"][0]


def test_the_checkpoint_gives_the_class(checkpoint, tmp_path):
    path = write_deploy_file(StageConfig(), checkpoint, tmp_path / "deploy.yaml", ENTRIES)
    assert yaml.safe_load(path.read_text())["stages"][0]["model_class_name"] == "WanPipeline"


def test_a_class_that_nobody_serves_is_refused(checkpoint, tmp_path):
    config = StageConfig({"model_class_name": "FluxPipeline"}, "f.yaml")
    with pytest.raises(
        InputError, match=r"'FluxPipeline' of f\.yaml has no pipeline .* Wan22Pipeline, WanPipeline"
    ):
        write_deploy_file(config, checkpoint, tmp_path / "deploy.yaml", ENTRIES)
    with pytest.raises(
        InputError, match=r"'WanPipeline' of .*model_index\.json .* no model package is installed"
    ):
        write_deploy_file(StageConfig(), checkpoint, tmp_path / "deploy.yaml", [])
    assert not (tmp_path / "deploy.yaml").exists()


@pytest.mark.parametrize("index", [None, "{", "[]", "{}"])
def test_a_folder_without_a_class_is_refused(tmp_path, index):
    if index is not None:
        (tmp_path / "model_index.json").write_text(index)
    with pytest.raises(InputError, match="is not a checkpoint in the diffusers layout"):
        write_deploy_file(StageConfig(), tmp_path, tmp_path / "deploy.yaml", ENTRIES)
