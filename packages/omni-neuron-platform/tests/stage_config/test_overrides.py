from __future__ import annotations

import pytest

from omni_neuron.platform.stage_config import StageConfig, apply_overrides
from omni_neuron.runtime.errors import InputError

FILE = StageConfig({"tensor_parallel_size": 2, "devices": (0, 1), "flow_shift": 3.0, "height": 64}, "f.yaml")


def test_a_flag_goes_before_the_file_and_says_so():
    config, sentences = apply_overrides(FILE, {"flow_shift": 5, "height": 128, "ring_degree": 1})
    assert config.values == {**FILE.values, "flow_shift": 5.0, "height": 128, "ring_degree": 1}
    assert sentences == [
        "flow_shift: 3.0 (file) -> 5.0 (--flow-shift)",
        "height: 64 (file) -> 128 (--height)",
    ]


def test_layout_and_devices_change_together():
    config, sentences = apply_overrides(FILE, {"tensor_parallel_size": 4, "devices": "0-3"})
    assert config.world_size == 4
    assert sentences == [
        "tensor_parallel_size: 2 (file) -> 4 (--tp)",
        "devices: 0,1 (file) -> 0,1,2,3 (override)",
    ]


def test_flags_not_given_and_equal_values_change_nothing():
    config, sentences = apply_overrides(FILE, {"tensor_parallel_size": 2, "flow_shift": None})
    assert config == FILE
    assert sentences == []


def test_the_file_stays_as_it_was():
    before = dict(FILE.values)
    apply_overrides(FILE, {"flow_shift": 9})
    assert FILE.values == before


def test_a_flag_that_breaks_the_devices_is_refused():
    with pytest.raises(
        InputError, match=r'devices of f\.yaml are "0,1", 2 of them, but the layout .* takes 4'
    ):
        apply_overrides(FILE, {"ring_degree": 2})


def test_a_flag_can_mend_the_devices():
    config, _ = apply_overrides(StageConfig({"devices": (0, 1)}), {"ring_degree": 2})
    assert config.world_size == 2


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"flow_shift": 0},
            r"flow_shift \(--flow-shift\) is 0 in the command line: it must be a number above 0",
        ),
        ({"flow_shfit": 5}, r"flow_shfit .* the nearest is flow_shift\."),
        ({"vae_use_tiling": True}, r"vae_use_tiling .* is not a known key"),
    ],
)
def test_bad_overrides_are_refused(overrides, message):
    with pytest.raises(InputError, match=message):
        apply_overrides(FILE, overrides)


@pytest.mark.parametrize("degree", [129, 10**30])
@pytest.mark.parametrize("name", ["tensor_parallel_size", "ring_degree"])
def test_no_degree_is_above_what_one_host_has(name: str, degree: int) -> None:
    with pytest.raises(InputError, match=f"{name}.*from 1 to 128"):
        apply_overrides(StageConfig(), {name: degree})
