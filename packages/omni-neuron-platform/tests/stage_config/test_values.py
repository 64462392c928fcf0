from __future__ import annotations

import math

import pytest

from omni_neuron.platform.stage_config import values


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (values.integer(1), 3, 3),
        (values.number(0, 1), 1, 1.0),
        (values.number(0, above=True), 0.5, 0.5),
        (values.choice("mp", "uni"), "uni", "uni"),
        (values.BOOLEAN, False, False),
        (values.DTYPE, "bf16", "bfloat16"),
        (values.DTYPE, "auto", "bfloat16"),
        (values.DTYPE, "FP32", "float32"),
        (values.DOTTED_PATH, "a.b.C", "a.b.C"),
        (values.ENVIRONMENT, {"A": 1, "B": "x", "C": True}, {"A": "1", "B": "x", "C": "1"}),
        (values.ATTENTION, {"backend": "TORCH_SDPA"}, "TORCH_SDPA"),
        (values.ATTENTION_ROLES, {"cross": {"backend": "X"}, "self": "Y"}, {"cross": "X", "self": "Y"}),
    ],
)
def test_accepted(kind, value, read):
    result = kind.read(value)
    assert result == read
    assert type(result) is type(read)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (values.integer(1), 0),
        (values.integer(1), True),
        (values.integer(1), 2.0),
        (values.integer(1, 2), 3),
        (values.number(0, 1), 1.01),
        (values.number(0, 1), True),
        (values.number(0, above=True), 0),
        (values.number(0), math.nan),
        (values.number(0), "1"),
        (values.choice("mp"), "ray"),
        (values.BOOLEAN, 1),
        (values.TEXT, " "),
        (values.DOTTED_PATH, "C"),
        (values.DOTTED_PATH, "a.b-c.D"),
        (values.DTYPE, "float16"),
        (values.ENVIRONMENT, ["A"]),
        (values.ENVIRONMENT, {"A": None}),
        (values.ATTENTION, {"backend": "X", "topk": 3}),
        (values.ATTENTION_ROLES, "X"),
    ],
)
def test_refused(kind, value):
    with pytest.raises(ValueError):
        kind.read(value)
