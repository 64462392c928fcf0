from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.testing import on_tiles

RNG = np.random.default_rng(6)
REDUCE = {"add": np.sum, "maximum": np.max, "minimum": np.min, "multiply": np.prod}
CMD = nisa.reduce_cmd


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 128), st.integers(1, 6), st.integers(1, 8), st.sampled_from(sorted(REDUCE)), st.booleans()
)
def test_tensor_reduce_over_the_last_dimensions(p: int, a: int, b: int, name: str, negate: bool) -> None:
    x = RNG.uniform(0.5, 1.5, (p, a, b)).astype(np.float32)
    for axis, kept in ((2, (p, a)), ([1, 2], (p, 1)), (-1, (p, a))):
        expected = REDUCE[name](x, axis=tuple(axis) if isinstance(axis, list) else axis).reshape(kept)
        found = on_tiles(
            lambda d, t, ax=axis: nisa.tensor_reduce(d, getattr(nl, name), t, ax, negate),
            x,
            shape=kept,
            dtype="float32",
        )
        np.testing.assert_allclose(found, -expected if negate else expected, rtol=1e-5)


def test_max_is_an_alias_in_reductions() -> None:
    x = RNG.standard_normal((16, 9)).astype(np.float32)
    found = on_tiles(lambda d, t: nisa.tensor_reduce(d, nl.max, t, axis=1), x, shape=(16, 1), dtype="float32")
    np.testing.assert_array_equal(found, x.max(axis=1, keepdims=True))


@pytest.mark.parametrize("name", sorted(REDUCE))
def test_tensor_scalar_reduce_writes_the_elements_and_the_row(name: str) -> None:
    x = RNG.uniform(0.5, 1.5, (64, 10)).astype(np.float32)
    elements, row = on_tiles(
        lambda d, r, t: nisa.tensor_scalar_reduce(d, t, nl.multiply, 2.0, getattr(nl, name), r),
        x, outputs=2, shape=[(64, 10), (64, 1)], dtype=["bfloat16", "float32"],
    )  # fmt: skip
    np.testing.assert_allclose(row[:, 0], REDUCE[name](2 * x, axis=1), rtol=1e-5)
    np.testing.assert_allclose(elements.astype(np.float32), 2 * x, rtol=2**-8)


def test_a_chain_keeps_the_registers_between_instructions() -> None:
    x = RNG.standard_normal((32, 30)).astype(np.float32)

    def body(dst: Any, t: Any) -> None:
        scratch = nl.ndarray((32, 10), nl.float32)
        for i, command in enumerate((CMD.reset_reduce, CMD.reduce, CMD.reduce)):
            result = dst if i == 2 else None
            nisa.tensor_scalar_reduce(
                scratch, t[:, nl.ds(10 * i, 10)], nl.add, 0.0, nl.maximum, result, reduce_cmd=command
            )

    found = on_tiles(body, x, shape=(32, 1), dtype="float32")
    np.testing.assert_array_equal(found, x.max(axis=1, keepdims=True))


def test_registers_can_be_loaded_and_negated() -> None:
    x, start = np.ones((8, 4), np.float32), np.full((8, 1), 10, np.float32)

    def body(dst: Any, t: Any, s: Any) -> None:
        scratch = nl.ndarray((8, 4), nl.float32)
        nisa.tensor_scalar_reduce(
            scratch,
            t,
            nl.add,
            0.0,
            nl.add,
            dst,
            reduce_cmd=CMD.load_reduce,
            reduce_init=s,
            reduce_res_negate=True,
        )

    assert (on_tiles(body, x, start, shape=(8, 1), dtype="float32") == -14).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 64), st.integers(1, 20), st.sampled_from(["add", "maximum", "minimum"]))
def test_cumulative_operations_run_along_the_row(p: int, n: int, name: str) -> None:
    x = RNG.integers(-5, 6, (p, n)).astype(np.float32)
    running = {"add": np.cumsum, "maximum": np.maximum.accumulate, "minimum": np.minimum.accumulate}[name]
    found = on_tiles(
        lambda d, t: nisa.tensor_scalar_cumulative(d, t, nl.multiply, getattr(nl, name), 3.0),
        x,
        shape=(p, n),
        dtype="float32",
    )
    np.testing.assert_array_equal(found, running(3 * x, axis=1))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 64), st.integers(1, 20), st.booleans())
def test_scan_is_a_recurrence(p: int, n: int, tile_start: bool) -> None:
    a, b = RNG.uniform(-1, 1, (2, p, n)).astype(np.float32)
    start = RNG.uniform(-1, 1, (p, 1)).astype(np.float32)
    found = on_tiles(
        lambda d, x, y, s: nisa.tensor_tensor_scan(d, x, y, s if tile_start else 0.5, nl.multiply, nl.add),
        a, b, start, shape=(p, n), dtype="float32",
    )  # fmt: skip
    r = start[:, 0] if tile_start else np.full(p, 0.5, np.float32)
    for i in range(n):
        r = a[:, i] * r + b[:, i]
        np.testing.assert_allclose(found[:, i], r, rtol=1e-6, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 128), st.lists(st.integers(1, 512), min_size=1, max_size=3))
def test_statistics_of_pieces_give_mean_and_variance(p: int, pieces: list[int]) -> None:
    x = (RNG.standard_normal((p, sum(pieces))) * 3 + 100).astype(np.float32)

    def body(dst: Any, t: Any) -> None:
        statistics = nl.ndarray((p, 6 * len(pieces)), nl.float32)
        start = 0
        for i, n in enumerate(pieces):
            nisa.bn_stats(statistics[:, nl.ds(6 * i, 6)], t[:, nl.ds(start, n)])
            start += n
        nisa.bn_aggr(dst, statistics)

    found = on_tiles(body, x, shape=(p, 2), dtype="float32")
    wide = x.astype(np.float64)
    np.testing.assert_allclose(found[:, 0], wide.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(found[:, 1], wide.var(axis=1), rtol=1e-4, atol=1e-6)
