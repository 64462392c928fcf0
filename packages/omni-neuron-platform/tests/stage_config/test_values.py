from __future__ import annotations

import math

import pytest

from omni_neuron.platform.stage_config import values


def test_a_value_is_cut_where_it_is_too_long_for_a_message():
    doubled: list[object] = ["x"]
    for _ in range(60):  # 2**60 texts, as aliases in a file make them
        doubled = [doubled, doubled]
    assert values.as_written([1, None, "é", math.inf]) == '[1, null, "é", Infinity]'
    assert 200 <= len(values.as_written(doubled)) <= 203
    assert values.as_written({(1, 2): 3}) == "{..."


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (values.number(0, 1), 1, 1.0),
        (values.number(0, above=True), 0.5, 0.5),
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
    result = kind.parse(value)
    assert result == read
    assert type(result) is type(read)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (values.number(0, 1), 1.01),
        (values.number(0, 1), True),
        (values.number(0, above=True), 0),
        (values.number(0), math.nan),
        (values.number(0), "1"),
        (values.BOOLEAN, 1),
        (values.TRUE, False),
        (values.TRUE, 1),
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
        kind.parse(value)
