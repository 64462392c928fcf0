from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.testing import on_tiles

RNG = np.random.default_rng(8)
FILL = np.finfo(np.float32).min


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 128), st.integers(-20, 20), st.integers(-3, 3),
    st.lists(st.tuples(st.integers(-4, 4), st.integers(1, 5)), min_size=1, max_size=4),
)  # fmt: skip
def test_iota_is_affine_in_partition_and_position(
    p: int, offset: int, channel: int, pattern: list[tuple[int, int]]
) -> None:
    counts = [n for _, n in pattern]
    found = on_tiles(
        lambda d: nisa.iota(d, [list(pair) for pair in pattern], offset, channel),
        shape=(p, int(np.prod(counts))), dtype="int32",
    )  # fmt: skip
    grid = np.indices(counts).reshape(len(counts), -1)
    expected = (
        offset + np.arange(p)[:, None] * channel + sum(s * g for (s, _), g in zip(pattern, grid, strict=True))
    )
    np.testing.assert_array_equal(found, expected)


def test_an_affine_offset_may_be_a_register() -> None:
    def body(dst: Any) -> None:
        nl.fori_loop(3, 4, lambda i: nisa.iota(dst, [[1, 4]], offset=i))

    np.testing.assert_array_equal(on_tiles(body, shape=(2, 4), dtype="int32"), [[3, 4, 5, 6]] * 2)

    def select(dst: Any, x: Any) -> None:
        at = nisa.register_alloc(-2)
        nisa.affine_select(dst, [[1, 4]], 0, x, 0.0, nl.greater_equal, offset=at)

    found = on_tiles(select, np.ones((2, 4), np.float32), shape=(2, 4), dtype="float32")
    np.testing.assert_array_equal(found, [[0, 0, 1, 1]] * 2)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 128), st.integers(1, 60), st.integers(-60, 60))
def test_affine_select_masks_causally(p: int, n: int, offset: int) -> None:
    x = RNG.standard_normal((p, n)).astype(np.float32)
    found = on_tiles(
        lambda d, t: nisa.affine_select(d, [[-1, n]], 1, t, -9.0, nl.greater_equal, offset),
        x,
        shape=(p, n),
        dtype="float32",
    )
    keep = offset + np.arange(p)[:, None] - np.arange(n)[None] >= 0
    np.testing.assert_array_equal(found, np.where(keep, x, np.float32(-9)))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 128), st.integers(1, 60), st.integers(0, 10))
def test_range_select_keeps_positions_between_bounds(p: int, n: int, start: int) -> None:
    x = RNG.standard_normal((p, n)).astype(np.float32)
    low = RNG.integers(0, n, (p, 1)).astype(np.float32)
    high = low + 5
    elements, top = on_tiles(
        lambda d, r, t, lo, hi: nisa.range_select(
            d, t, nl.greater_equal, nl.less, lo, hi, reduce_res=r, range_start=start
        ),
        x, low, high, outputs=2, shape=[(p, n), (p, 1)], dtype=["float32", "float32"],
    )  # fmt: skip
    at = start + np.arange(n)[None]
    expected = np.where((at >= low) & (at < high), x, FILL)
    np.testing.assert_array_equal(elements, expected)
    np.testing.assert_array_equal(top, expected.max(axis=1, keepdims=True))


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 128), st.integers(1, 60), st.booleans(), st.sampled_from([np.uint8, np.uint16, np.bool_])
)
def test_select_reduce_and_predicated_copies_choose_by_a_predicate(
    p: int, n: int, reverse: bool, kind: type[Any]
) -> None:
    x = RNG.standard_normal((p, n)).astype(np.float32)
    mask = RNG.integers(0, 2, (p, n)).astype(kind)
    chosen = (mask == 0) if reverse else (mask != 0)
    elements, top = on_tiles(
        lambda d, r, t, m: nisa.select_reduce(d, m, t, -2.0, r, nisa.reduce_cmd.reset_reduce,
        reverse_pred=reverse),
        x, mask, outputs=2, shape=[(p, n), (p, 1)], dtype=["float32", "float32"],
    )  # fmt: skip
    expected = np.where(chosen, x, np.float32(-2))
    np.testing.assert_array_equal(elements, expected)
    np.testing.assert_array_equal(top, expected.max(axis=1, keepdims=True))

    def body(dst: Any, t: Any, m: Any) -> None:
        nisa.memset(dst, 7.0)
        nisa.tensor_copy_predicated(dst, t, m, reverse)

    np.testing.assert_array_equal(
        on_tiles(body, x, mask, shape=(p, n), dtype="float32"), np.where(chosen, x, 7)
    )
