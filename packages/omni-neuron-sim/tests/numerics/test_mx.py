import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.sim.numerics import formats
from omni_neuron.sim.numerics.mx import SCALE_BIAS, group_scales, pack, scale_rows, unpack


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (formats.float8_e4m3fn_x4, [1.0, -0.5, 448.0, 0.0]),
        (formats.float8_e5m2_x4, [1.0, -0.5, 57344.0, 0.0]),
        (formats.float4_e2m1fn_x4, [1.0, -0.5, 6.0, 0.0]),
    ],
)
def test_packing_is_undone_by_unpacking(dtype: formats.DType, values: list[float]) -> None:
    lanes = np.array(values, np.float32).reshape(1, 1, 4)
    packed = pack(lanes, dtype)
    assert packed.dtype == dtype.storage
    np.testing.assert_array_equal(unpack(packed, dtype), lanes)


def test_lane_zero_is_the_lowest_byte() -> None:
    packed = pack(np.array([1.0, 0, 0, 0], np.float32).reshape(1, 1, 4), formats.float8_e4m3fn_x4)
    assert int(packed[0, 0]) == int(np.array(1.0, ml_dtypes.float8_e4m3fn).view(np.uint8))


@given(st.integers(-60, 60))
def test_a_scale_leaves_the_largest_element_one_power_below_the_format(exponent: int) -> None:
    """2^(floor(log2 amax) - (Emax - 1)): amax / scale is at least 2^(Emax - 1)."""
    values = np.zeros((8, 1, 4), np.float32)
    values[3, 0, 2] = 1.5 * 2.0**exponent
    for dtype, emax in ((formats.float8_e4m3fn_x4, 8), (formats.float8_e5m2_x4, 15)):
        scale = group_scales(values, dtype)
        assert int(scale[0, 0]) - SCALE_BIAS == exponent - (emax - 1)
        scaled = values.max() / scale_rows(scale, 8)[0, 0]
        assert 2.0 ** (emax - 1) <= scaled < 2.0**emax


def test_a_group_of_zeros_has_the_smallest_scale() -> None:
    assert group_scales(np.zeros((8, 1, 4), np.float32), formats.float8_e4m3fn_x4)[0, 0] == 0
