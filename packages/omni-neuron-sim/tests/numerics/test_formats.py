import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.sim.numerics import formats
from omni_neuron.sim.numerics.formats import FORMATS, as_dtype, encode, storage_of, to_float32

floats = st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=50).map(
    lambda x: np.array(x, np.float32)
)


@given(floats)
def test_narrow_floats_round_as_torch_does(values: np.ndarray) -> None:
    for dtype, kind in ((formats.bfloat16, torch.bfloat16), (formats.float16, torch.float16)):
        ours = to_float32(encode(values, dtype))
        normal = np.where(np.abs(values) < 2.0**-126, np.float32(0), values)
        np.testing.assert_array_equal(ours, torch.from_numpy(normal).to(kind).float().numpy())


def test_fp16_is_what_numpy_makes_of_it_also_in_windows_and_read_only() -> None:
    stored = np.arange(2**16, dtype=np.uint16).view(np.float16).reshape(256, 256)
    wide = np.random.default_rng(0).normal(scale=2.0**-12, size=(256, 256)).astype(np.float32)
    wide[0, :3] = 65519.996, 65520.0, -1e9  # the largest that rounds down, and what becomes infinite
    constant = np.broadcast_to(np.float32(1 / 3), (2, 256))
    with np.errstate(over="ignore"):
        for part in (np.s_[:, :], np.s_[3:100, 1:200:3]):
            np.testing.assert_array_equal(to_float32(stored[part]), stored[part].astype(np.float32))
            found = encode(wide[part], formats.float16)
            np.testing.assert_array_equal(found, wide[part].astype(np.float16))
        np.testing.assert_array_equal(encode(constant, formats.float16), constant.astype(np.float16))


def test_denormal_results_become_zero() -> None:
    """exp(-88) would be denormal: it is the reason why a row with a bound that is 88 nats loose is lost."""
    tiny = np.float32([2.0**-126, 2.0**-127, -(2.0**-140)])
    for dtype in (formats.float32, formats.tfloat32, formats.bfloat16):
        np.testing.assert_array_equal(to_float32(encode(tiny, dtype)), [2.0**-126, 0, 0])
    np.testing.assert_array_equal(to_float32(encode(np.float32([2.0**-24]), formats.float16)), [2.0**-24])


@given(floats)
def test_fp8_rounds_to_the_nearest_and_saturates(values: np.ndarray) -> None:
    for dtype, kind, largest in (
        (formats.float8_e4m3fn, torch.float8_e4m3fn, 448.0),
        (formats.float8_e5m2, torch.float8_e5m2, 57344.0),
    ):
        finite = values[np.isfinite(values)]
        ours = to_float32(encode(finite, dtype))
        theirs = torch.from_numpy(np.clip(finite, -largest, largest)).to(kind).float().numpy()
        np.testing.assert_array_equal(ours, theirs)


def test_legacy_fp8_ends_at_240_and_has_infinity() -> None:
    stored = to_float32(encode(np.array([239.0, 300.0, np.inf, -500.0], np.float32), formats.float8_e4m3))
    np.testing.assert_array_equal(stored, [240.0, 240.0, np.inf, -240.0])


@given(floats)
def test_integers_round_to_even_and_saturate(values: np.ndarray) -> None:
    for dtype in (formats.int8, formats.uint8, formats.int16, formats.uint16, formats.int32, formats.uint32):
        limits = np.iinfo(dtype.storage)
        expected = [
            min(max(round(float(v)), limits.min), limits.max) if np.isfinite(v) else 0 for v in values
        ]
        finite = np.isfinite(values)
        np.testing.assert_array_equal(encode(values, dtype)[finite], np.array(expected, np.int64)[finite])


def test_integers_treat_nan_as_zero_and_keep_exact_values() -> None:
    assert encode(np.array([np.nan], np.float32), formats.int32)[0] == 0
    assert encode(np.array([2**31 - 1], np.int64), formats.int32)[0] == 2**31 - 1


@given(floats)
def test_tfloat32_keeps_ten_bits_of_mantissa(values: np.ndarray) -> None:
    stored = encode(values, formats.tfloat32)
    finite = np.isfinite(values) & np.isfinite(stored) & (np.abs(values) > 2.0**-100)
    assert np.all(np.abs(stored - values)[finite] <= np.abs(values)[finite] * np.float32(2.0**-11))
    assert not (stored[finite].view(np.uint32) & 0x1FFF).any()


def test_relaxed_mode_keeps_narrow_floats_in_fp32() -> None:
    value = np.array([1.0001], np.float32)
    assert storage_of(formats.bfloat16, precise=False) == np.float32
    assert encode(value, formats.bfloat16, precise=False)[0] == value[0]
    assert storage_of(formats.int8, precise=False) == np.int8


@pytest.mark.parametrize(
    "dtype",
    [formats.bfloat16, formats.float16, formats.float8_e4m3, formats.float8_e4m3fn, formats.float8_e5m2],
)
def test_stochastic_rounding_takes_a_neighbour_and_is_right_on_average(dtype: formats.DType) -> None:
    random = np.random.default_rng(0)
    values = random.normal(scale=4.0, size=64).astype(np.float32)
    values[:3] = 0.0, -1.5, 2.0**-10  # the last is denormal in fp8
    drawn = to_float32(encode(np.tile(values, (4096, 1)), dtype, random=random)).astype(np.float64)
    exact = to_float32(encode(values, dtype)) == values
    assert exact[:2].all()
    for i, value in enumerate(values):
        found = np.unique(drawn[:, i])
        if exact[i]:
            assert found.tolist() == [value]
            continue
        assert found[0] < value < found[1]
        codes = encode(found.astype(np.float32), dtype).view(f"i{dtype.itemsize}").astype(int)
        assert abs(codes[1] - codes[0]) % 2 ** (8 * dtype.itemsize - 1) == 1
        gap = found[1] - found[0]
        assert abs(drawn[:, i].mean() - value) < 5 * gap / 2 / 4096**0.5


def test_stochastic_rounding_keeps_what_has_no_neighbour() -> None:
    odd = np.array([np.inf, -np.inf, np.nan, 1e30, 3.4e38], np.float32)
    for dtype in (formats.bfloat16, formats.float16, formats.float8_e4m3, formats.float8_e4m3fn):
        by_chance = encode(odd, dtype, random=np.random.default_rng(0))
        np.testing.assert_array_equal(to_float32(by_chance)[:3], to_float32(encode(odd, dtype))[:3])
        assert to_float32(by_chance)[4] in (dtype.largest, np.inf) or dtype is formats.bfloat16
    for dtype in (formats.int8, formats.float32, formats.tfloat32):
        numbers = np.array([0.5, 1 / 3, -7.25], np.float32)
        np.testing.assert_array_equal(
            encode(numbers, dtype, random=np.random.default_rng(0)), encode(numbers, dtype)
        )


def test_a_format_is_its_name() -> None:
    for name, dtype in FORMATS.items():
        assert dtype == name
        assert f"{dtype}" == name
        assert as_dtype(name) is dtype
    assert as_dtype(torch.bfloat16) is formats.bfloat16
    assert as_dtype(np.float32) is formats.float32
    assert as_dtype(np.dtype(np.bool_)) is formats.bool_


@pytest.mark.parametrize("foreign", [np.float64, torch.int64, "complex64"])
def test_formats_that_nki_lacks_are_refused(foreign: object) -> None:
    with pytest.raises(TypeError, match="NKI has no dtype"):
        as_dtype(foreign)
