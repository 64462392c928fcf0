import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.numerics.formats import FORMATS, encode, to_float32
from omni_neuron.sim.testing import on_tiles

RNG = np.random.default_rng(5)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return encode(RNG.standard_normal(shape).astype(np.float32), FORMATS[dtype])


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return to_float32(a).astype(np.float64).T @ to_float32(b).astype(np.float64)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 128), st.integers(1, 128), st.integers(1, 512),
    st.sampled_from(["float32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2"]),
)  # fmt: skip
def test_products_are_summed_in_fp32(k: int, m: int, n: int, dtype: str) -> None:
    a, b = normal(k, m, dtype=dtype), normal(k, n, dtype=dtype)

    def body(dst: Any, x: Any, y: Any) -> None:
        psum = nl.ndarray((m, n), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(psum, x, y)
        nisa.tensor_copy(dst, psum)

    found = on_tiles(body, a, b, shape=(m, n), dtype="float32")
    scale = np.abs(to_float32(a)).astype(np.float64).T @ np.abs(to_float32(b)).astype(np.float64)
    assert np.all(np.abs(found - product(a, b)) <= k * 2.0**-23 * scale + 1e-30)


@pytest.mark.parametrize(
    ("flags", "count"), [((None, None), 2), ((False, True), 2), ((False, False), 1), ((None, False, None), 2)]
)
def test_accumulation(flags: tuple[bool | None, ...], count: int) -> None:
    a, b = normal(64, 32), normal(64, 48)

    def body(dst: Any, x: Any, y: Any) -> None:
        psum = nl.ndarray((32, 48), nl.float32, buffer=nl.psum)
        for flag in flags:
            nisa.nc_matmul(psum, x, y, accumulate=flag)
        nisa.tensor_copy(dst, psum)

    np.testing.assert_allclose(
        on_tiles(body, a, b, shape=(32, 48), dtype="float32"), count * product(a, b), atol=1e-4
    )


def test_accumulation_is_kept_per_element_and_per_tensor() -> None:
    a, b = normal(64, 32), normal(64, 48)

    def body(dst: Any, x: Any, y: Any) -> None:
        for _ in range(2):  # a new tensor at a used bank starts anew
            psum = nl.ndarray((32, 48), nl.float32, buffer=nl.psum, address=(0, 2048))
            nisa.nc_matmul(psum[:, 0:32], x, y[:, 0:32])
            nisa.nc_matmul(psum[:, 16:48], x, y[:, 16:48])
            nisa.tensor_copy(dst, psum)

    expected = product(a, b)
    expected[:, 16:32] *= 2
    np.testing.assert_allclose(on_tiles(body, a, b, shape=(32, 48), dtype="float32"), expected, atol=1e-4)


def test_a_write_by_another_engine_starts_a_new_group() -> None:
    a, b = normal(64, 32), normal(64, 48)

    def body(dst: Any, x: Any, y: Any) -> None:
        psum = nl.ndarray((32, 48), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(psum, x, y)
        nisa.memset(psum, 5.0)
        nisa.nc_matmul(psum, x, y)
        nisa.tensor_copy(dst, psum)

    np.testing.assert_allclose(
        on_tiles(body, a, b, shape=(32, 48), dtype="float32"), product(a, b), atol=1e-4
    )


def test_free_dimensions_are_flattened() -> None:
    a, b = normal(32, 2, 16), normal(32, 3, 8)

    def body(dst: Any, x: Any, y: Any) -> None:
        psum = nl.ndarray((32, 3, 8), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(psum, x, y)
        nisa.tensor_copy(dst, psum)

    expected = product(a.reshape(32, 32), b.reshape(32, 24))
    np.testing.assert_allclose(on_tiles(body, a, b, shape=(32, 24), dtype="float32"), expected, atol=1e-4)


def test_double_row_contracts_over_both_halves() -> None:
    a, b = normal(128, 2, 64, dtype="float8_e4m3"), normal(128, 2, 96, dtype="float8_e4m3")

    def body(dst: Any, x: Any, y: Any) -> None:
        psum = nl.ndarray((64, 96), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(psum, x, y, perf_mode=nisa.matmul_perf_mode.double_row)
        nisa.tensor_copy(dst, psum)

    expected = product(a.reshape(256, 64), b.reshape(256, 96))
    np.testing.assert_allclose(on_tiles(body, a, b, shape=(64, 96), dtype="float32"), expected, atol=2e-3)


def test_trn3_rounds_each_addition_in_a_bf16_psum() -> None:
    a = np.ones((1, 1), np.float32)
    big, small = np.full((1, 1), 256.0, np.float32), np.full((1, 1), 1.0, np.float32)

    def body(dst: Any, one: Any, x: Any, y: Any) -> None:
        psum = nl.ndarray((1, 1), nl.bfloat16, buffer=nl.psum)
        nisa.nc_matmul(psum, one, x)
        for _ in range(3):
            nisa.nc_matmul(psum, one, y)
        nisa.tensor_copy(dst, psum)

    assert on_tiles(body, a, big, small, shape=(1, 1), dtype="float32", target="trn3")[0, 0] == 256.0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8"])
@pytest.mark.parametrize("shape", [(128, 128), (17, 100), (32, 20)])
def test_transposes_move_bits(shape: tuple[int, int], dtype: str) -> None:
    data = RNG.integers(0, 100, shape).astype(FORMATS[dtype].storage)

    def body(dst: Any, x: Any) -> None:
        psum = nl.ndarray(shape[::-1], x.dtype, buffer=nl.psum)
        nisa.nc_transpose(psum, x)
        nisa.tensor_copy(dst, psum)

    np.testing.assert_array_equal(on_tiles(body, data, shape=shape[::-1], dtype=dtype), data.T)


def test_a_matmul_with_an_identity_transposes() -> None:
    data = normal(100, 64, dtype="bfloat16")
    data[0, 0], data[1, 1] = np.inf, np.nan

    def body(dst: Any, x: Any) -> None:
        psum = nl.ndarray((64, 100), nl.bfloat16, buffer=nl.psum)
        nisa.nc_matmul(psum, x, nl.shared_identity_matrix(100, dtype=nl.bfloat16), is_transpose=True)
        nisa.tensor_copy(dst, psum)

    found = on_tiles(body, data, shape=(64, 100), dtype="bfloat16")
    np.testing.assert_array_equal(found.view(np.uint16), data.T.copy().view(np.uint16))
    assert found.dtype == ml_dtypes.bfloat16


def test_adding_after_a_read_without_saying_so_is_warned_of() -> None:
    a = normal(32, 32)

    def body(dst: Any, x: Any, reads: int) -> None:
        psum = nl.ndarray((32, 32), nl.float32, buffer=nl.psum)
        for i in range(3):
            nisa.nc_matmul(psum, x, x)
            if i < reads:
                nisa.tensor_copy(dst, psum)
        nisa.tensor_copy(dst, psum)

    for reads in range(3):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = on_tiles(lambda d, x, n=reads: body(d, x, n), a, shape=(32, 32), dtype="float32")
        assert len([w for w in caught if "accumulate=None adds" in str(w.message)]) == reads
        np.testing.assert_allclose(found, 3 * product(a, a), atol=1e-3)


@pytest.mark.parametrize(("target", "warned"), [("trn2", 1), ("trn3", 0)])
def test_a_filled_tile_is_added_to(target: str, warned: int) -> None:
    a = normal(32, 32)

    def body(dst: Any, x: Any) -> None:
        psum = nl.ndarray((32, 32), nl.float32, buffer=nl.psum)
        nisa.memset(psum, 2.0)
        for _ in range(2):
            nisa.nc_matmul(psum, x, x, accumulate=True)
        nisa.tensor_copy(dst, psum)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = on_tiles(body, a, shape=(32, 32), dtype="float32", target=target)
    assert len([w for w in caught if "adds to what another engine wrote" in str(w.message)]) == warned
    np.testing.assert_allclose(found, 2 + 2 * product(a, a), atol=1e-4)
