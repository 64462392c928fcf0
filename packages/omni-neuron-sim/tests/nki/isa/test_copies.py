from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.numerics.formats import FORMATS, encode, to_float32
from omni_neuron.sim.testing import on_tiles

RNG = np.random.default_rng(9)
NUMBERS = [name for name, dtype in FORMATS.items() if dtype.kind != "packed" and name != "float8_e8m0fnu"]


@pytest.mark.parametrize("dtype", list(FORMATS))
def test_a_copy_of_one_dtype_keeps_every_bit(dtype: str) -> None:
    bits = RNG.integers(0, 256, (16, 8 * FORMATS[dtype].itemsize)).astype(np.uint8)
    bits = bits & 1 if dtype == "bool" else bits
    found = on_tiles(
        lambda d, t: nisa.tensor_copy(d.view(dtype), t.view(dtype)), bits, shape=bits.shape, dtype="uint8"
    )
    np.testing.assert_array_equal(found, bits)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS))
def test_a_copy_between_dtypes_goes_through_fp32(source: str, result: str) -> None:
    x = encode(RNG.uniform(-3, 3, (8, 8)).astype(np.float32), FORMATS[source])
    found = on_tiles(lambda d, t: nisa.tensor_copy(d, t), x, shape=(8, 8), dtype=result)
    np.testing.assert_array_equal(
        np.asarray(found, np.float32), to_float32(encode(to_float32(x), FORMATS[result]))
    )


def test_copies_need_equal_counts_and_not_equal_ranks() -> None:
    x = RNG.standard_normal((4, 2, 3)).astype(np.float32)
    found = on_tiles(lambda d, t: nisa.tensor_copy(d, t), x, shape=(4, 6), dtype="float32")
    np.testing.assert_array_equal(found, x.reshape(4, 6))


def test_memset_fills_each_kind() -> None:
    for dtype, value in (
        ("float32", 1.5),
        ("bfloat16", 2),
        ("int32", -3),
        ("uint8", 7),
        ("float8_e4m3fn_x4", 0),
    ):
        found = on_tiles(lambda d, v=value: nisa.memset(d, v), shape=(4, 4), dtype=dtype)
        assert (np.asarray(found, np.float32) == value).all()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 31), st.just(255)), min_size=32, max_size=32), st.integers(1, 4))
def test_a_shuffle_permutes_within_quadrants(mask: list[int], quadrants: int) -> None:
    x = RNG.standard_normal((32 * quadrants, 5)).astype(np.float32)

    def body(dst: Any, t: Any) -> None:
        nisa.memset(dst, -1.0)
        nisa.nc_stream_shuffle(dst, t, mask)

    expected = np.full_like(x, -1)
    for q in range(quadrants):
        for i, m in enumerate(mask):
            if m != 255:
                expected[32 * q + i] = x[32 * q + m]
    np.testing.assert_array_equal(on_tiles(body, x, shape=x.shape, dtype="float32"), expected)


def test_a_shuffle_of_zeros_broadcasts_a_partition_to_every_quadrant() -> None:
    x = RNG.standard_normal((128, 9)).astype(np.float32)

    def body(dst: Any, t: Any) -> None:
        for q in range(4):
            nisa.nc_stream_shuffle(dst[nl.ds(32 * q, 32)], t[0:1], [0] * 32)

    found = on_tiles(body, x, shape=x.shape, dtype="float32")
    np.testing.assert_array_equal(found, np.broadcast_to(x[:1], x.shape))


def test_a_shuffle_in_place_reads_the_old_rows() -> None:
    x = RNG.standard_normal((32, 4)).astype(np.float32)
    turned = [(i + 1) % 32 for i in range(32)]

    def body(dst: Any, t: Any) -> None:
        nisa.nc_stream_shuffle(t, t, turned)
        nisa.tensor_copy(dst, t)

    np.testing.assert_array_equal(on_tiles(body, x, shape=x.shape, dtype="float32"), x[turned])
