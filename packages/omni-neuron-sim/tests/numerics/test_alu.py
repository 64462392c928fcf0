import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.sim.numerics.alu import ARITHMETIC, BITWISE, REDUCE, reduce_axis

PYTHON = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "maximum": max, "minimum": min, "equal": lambda a, b: float(a == b), "not_equal": lambda a, b: float(a
    != b), "greater": lambda a, b: float(a > b), "greater_equal": lambda a, b: float(a >= b),
    "less": lambda a, b: float(a < b), "less_equal": lambda a, b: float(a <= b),
    "logical_and": lambda a, b: float(bool(a) and bool(b)), "logical_or": lambda a, b: float(bool(a) or
    bool(b)), "logical_xor": lambda a, b: float(bool(a) != bool(b)), "abs_max": lambda a, b: max(abs(a),
    abs(b)),
    "abs_min": lambda a, b: min(abs(a), abs(b)),
}  # fmt: skip


@given(st.integers(-50, 50), st.integers(-50, 50))
def test_arithmetic_is_that_of_numbers(a: int, b: int) -> None:
    for name, expected in PYTHON.items():
        result = ARITHMETIC[name](np.float32([a]), np.float32([b]))
        assert result[0] == expected(a, b), name
    assert ARITHMETIC["power"](np.float32([3]), np.float32([2]))[0] == 9


@given(st.integers(0, 2**32 - 1), st.integers(0, 40))
def test_shifts_are_logical(value: int, distance: int) -> None:
    a = np.array([value], np.uint32)
    moved = BITWISE["right_shift"](a.view(np.int32), np.array([distance], np.int32))
    assert moved.view(np.uint32)[0] == value >> distance
    assert BITWISE["left_shift"](a, np.array([distance], np.uint32))[0] == (value << distance) % 2**32


@pytest.mark.parametrize("name", sorted(REDUCE))
def test_a_reduction_folds_from_the_left(name: str) -> None:
    values = np.array([[3.0, -1.0, 4.0, 0.0], [0.0, 2.0, -5.0, 1.0]], np.float32)
    expected = values[:, :1]
    for i in range(1, 4):
        expected = ARITHMETIC[name](expected, values[:, i : i + 1])
    np.testing.assert_array_equal(reduce_axis(name, values, 1), expected)
