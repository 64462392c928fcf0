from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.platform.stage_config.devices import expand_devices, written_devices


@pytest.mark.parametrize(
    ("value", "devices"),
    [
        ("0", (0,)),
        (5, (5,)),
        ("0-3", (0, 1, 2, 3)),
        ("0-1, 8 ,3-4", (0, 1, 8, 3, 4)),
        ("7-7", (7,)),
        ("0-63", tuple(range(64))),
    ],
)
def test_numbers_and_ranges_expand_in_the_order_of_the_file(value, devices):
    assert expand_devices(value) == devices


@pytest.mark.parametrize(
    "value", ["", "3-1", "0,0", "0-2,1", "a", "0..3", "-1", "1,", -1, True, None, [0, 1], "cpu"]
)
def test_other_values_are_refused(value):
    with pytest.raises(ValueError):
        expand_devices(value)


@given(st.lists(st.integers(0, 500), min_size=1, unique=True).map(tuple))
def test_what_is_written_reads_back(devices):
    text = written_devices(devices)
    assert "-" not in text
    assert expand_devices(text) == devices
