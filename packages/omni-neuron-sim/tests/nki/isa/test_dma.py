from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.sim import KernelError, simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.numerics.formats import FORMATS, encode, to_float32

RNG = np.random.default_rng(10)


@pytest.mark.parametrize("result", ["float32", "bfloat16", "int32", "float8_e4m3"])
def test_a_dma_casts_through_fp32_and_needs_equal_counts_only(result: str) -> None:
    x = RNG.uniform(-4, 4, (6, 32)).astype(np.float32)

    def kernel(a: Any) -> Any:
        out = nl.ndarray((3, 64), FORMATS[result], buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=a)
        return out

    found = simulate(kernel, x)
    np.testing.assert_array_equal(
        np.asarray(found, np.float32), to_float32(encode(x, FORMATS[result])).reshape(3, 64)
    )


def test_rows_out_of_range_are_skipped_when_asked() -> None:
    table = RNG.standard_normal((10, 4)).astype(np.float32)
    index = np.array([[3], [99], [0], [-1]], np.int32)

    def kernel(x: Any, at: Any) -> Any:
        where = nl.ndarray((4, 1), nl.int32)
        nisa.dma_copy(where, at)
        tile = nl.zeros((4, 4), nl.float32)
        nisa.dma_copy(tile, x.ap([[4, 4], [1, 4]], vector_offset=where), oob_mode=nisa.oob_mode.skip)
        out = nl.ndarray((4, 4), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, tile)
        back = nl.zeros((10, 4), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(back.ap([[4, 4], [1, 4]], vector_offset=where), tile, oob_mode=nisa.oob_mode.skip)
        return out, back

    gathered, scattered = simulate(kernel, table, index)
    expected = np.zeros((4, 4), np.float32)
    expected[[0, 2]] = table[[3, 0]]
    np.testing.assert_array_equal(gathered, expected)
    expected = np.zeros((10, 4), np.float32)
    expected[[3, 0]] = table[[3, 0]]
    np.testing.assert_array_equal(scattered, expected)


@pytest.mark.parametrize(
    ("shape", "order"), [((64, 48), (1, 0)), ((4, 5, 6), (2, 1, 0)), ((2, 3, 4, 5), (3, 1, 2, 0))]
)
def test_dma_transposes(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape).astype(np.float32)

    def kernel(a: Any) -> Any:
        tile = nl.ndarray(tuple(shape[i] for i in order), nl.float32)
        nisa.dma_transpose(tile, a)
        out = nl.ndarray(tile.shape, nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, tile)
        return out

    np.testing.assert_array_equal(simulate(kernel, x), x.transpose(order))


def test_gathered_rows_are_transposed() -> None:
    x = RNG.standard_normal((20, 16)).astype(np.float32)
    index = np.array([[7], [2], [19]], np.int32)

    def kernel(a: Any, at: Any) -> Any:
        where, tile = nl.ndarray((3, 1), nl.int32), nl.ndarray((16, 3), nl.float32)
        nisa.dma_copy(where, at)
        nisa.dma_transpose(tile, a.vector_select(0, where))
        out = nl.ndarray(tile.shape, nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, tile)
        return out

    np.testing.assert_array_equal(simulate(kernel, x, index), x[index[:, 0]].T)


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 16))
def test_a_dma_sums_up_to_sixteen_sources(count: int) -> None:
    x = RNG.standard_normal((count, 8, 4)).astype(np.float32)

    def kernel(a: Any) -> Any:
        out = nl.ndarray((8, 4), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_compute(out, [a[i] for i in range(count)], nl.add)
        return out

    np.testing.assert_allclose(simulate(kernel, x), x.sum(axis=0), atol=1e-5)


def test_rows_that_occur_twice_are_added_twice() -> None:
    index = np.array([[1], [1], [3]], np.int32)

    def kernel(at: Any) -> Any:
        where, ones = nl.ndarray((3, 1), nl.int32), nl.ones((3, 2), nl.float32)
        nisa.dma_copy(where, at)
        out = nl.zeros((4, 2), nl.float32, buffer=nl.shared_hbm)
        rows = out.ap([[2, 3], [1, 2]], vector_offset=where)
        nisa.dma_compute(rows, [rows, ones], nl.add, unique_indices=False)
        return out

    np.testing.assert_array_equal(simulate(kernel, index), [[0, 0], [2, 2], [0, 0], [1, 1]])


def test_added_rows_reach_the_argument_and_what_is_undefined_stays_so() -> None:
    def kernel(table: Any, at: Any, defined: int) -> None:
        where, ones = nl.ndarray((3, 1), nl.int32), nl.ndarray((3, 2), nl.float32)
        nisa.dma_copy(where, at)
        nisa.memset(ones[0:defined], 1.0)
        rows = table.ap([[2, 3], [1, 2]], vector_offset=where)
        nisa.dma_compute(rows, [rows, ones], nl.add, unique_indices=False, oob_mode=nisa.oob_mode.skip)

    table, index = np.zeros((4, 2), np.float32), np.array([[1], [9], [1]], np.int32)
    simulate(kernel, table, index, 3)
    np.testing.assert_array_equal(table, [[0, 0], [2, 2], [0, 0], [0, 0]])
    with pytest.raises(KernelError, match=r"2 elements of the result arg0.* the first at \[1, 0\]"):
        simulate(kernel, table, index, 2)


def test_integers_that_are_skipped_keep_their_bits_and_transposes_skip_too() -> None:
    table = (RNG.integers(0, 2**31, (10, 4)) | 1).astype(np.int32)
    index = np.array([[3], [99]], np.int32)

    def kernel(x: Any, at: Any) -> Any:
        where, kept = nl.ndarray((2, 1), nl.int32), nl.full((2, 4), 2**30 + 1, nl.int32)
        turned = nl.full((4, 2), 7, nl.int32)
        nisa.dma_copy(where, at)
        nisa.dma_copy(kept, x.vector_select(0, where), oob_mode=nisa.oob_mode.skip)
        nisa.dma_transpose(turned, x.vector_select(0, where), oob_mode=nisa.oob_mode.skip)
        results = [nl.ndarray(t.shape, nl.int32, buffer=nl.shared_hbm) for t in (kept, turned)]
        for result, tile in zip(results, (kept, turned), strict=True):
            nisa.dma_copy(result, tile)
        return tuple(results)

    kept, turned = simulate(kernel, table, index)
    np.testing.assert_array_equal(kept, np.stack([table[3], np.full(4, 2**30 + 1)]))
    np.testing.assert_array_equal(turned, np.stack([table[3], np.full(4, 7)]).T)
