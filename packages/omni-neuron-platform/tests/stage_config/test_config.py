from __future__ import annotations

import pytest

from omni_neuron.platform.stage_config.config import StageConfig, check_layout, written_indices
from omni_neuron.runtime.errors import InputError


def test_nothing_set_is_one_rank_on_the_first_device():
    config = StageConfig()
    assert config.world_size == 1
    assert config.devices == (0,)
    assert config.request_defaults == {}
    check_layout(config)


def test_devices_follow_the_layout_where_nobody_chose():
    assert StageConfig({"tensor_parallel_size": 2, "ring_degree": 3}).devices == (0, 1, 2, 3, 4, 5)


def test_devices_are_written_without_ranges():
    assert written_indices((8, 0, 1, 2)) == "8,0,1,2"


def test_request_defaults_keep_to_sampling_parameters():
    assert StageConfig({"seed": 3, "height": 64, "flow_shift": 5.0}).request_defaults == {
        "height": 64,
        "seed": 3,
    }


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"devices": (0, 1)}, ['"0,1"', "takes 1"]),
        ({"ring_degree": 128, "cfg_parallel_size": 2}, ["takes 256 ranks", "at most 128"]),
        ({"ring_degree": 4, "devices": (0, 1)}, ["ring_degree 4", "takes 4"]),
        ({"sequence_parallel_size": 4, "ring_degree": 2}, ["is 4", "ulysses_degree x ring_degree is 2"]),
        ({"ulysses_degree": 3, "ring_degree": 2, "devices": (0, 1)}, ["ulysses_degree 3", "takes 6"]),
        ({"ulysses_degree": 2, "model_config.ring_attention": True}, ["there is no ring"]),
        ({"ring_degree": 2, "model_config.placement": (0, 2)}, ['"0,2"', "each rank of 0..1 once"]),
        ({"ring_degree": 2, "model_config.placement": (0,)}, ['"0"', "each rank of 0..1 once"]),
        ({"distributed_executor_backend": "uni", "cfg_parallel_size": 2}, ["uni", "takes 2"]),
    ],
)
def test_contradictions_are_refused(values, words):
    with pytest.raises(InputError) as refused:
        check_layout(StageConfig(values, "f.yaml"))
    for word in (*words, "f.yaml"):
        assert word in str(refused.value)
