from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.testing import on_tiles


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 128), st.integers(8, 40), st.integers(0, 99))
def test_the_eight_largest_and_topk(p: int, n: int, seed: int) -> None:
    x = np.random.default_rng(seed).permutation(p * n).reshape(p, n).astype(np.float32)
    found = on_tiles(lambda d, t: nisa.max8(d, t), x, shape=(p, 8), dtype="float32")
    np.testing.assert_array_equal(found, -np.sort(-x, axis=1)[:, :8])
    values, index = on_tiles(
        lambda v, i, t: nisa.topk(v, i, t, 5),
        x,
        outputs=2,
        shape=[(p, 5), (p, 5)],
        dtype=["float32", "uint32"],
    )
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :5])
    np.testing.assert_array_equal(np.take_along_axis(x, index.astype(int), axis=1), values)


def test_equal_values_find_successive_elements_and_missing_ones_all_ones() -> None:
    data = np.array([[5, 1, 5, 2, 5, 3, 4, 9]], np.float32)
    vals = np.array([[5, 5, 5, 5, 9, 8, 1, 2]], np.float32)
    found = on_tiles(lambda d, t, v: nisa.nc_find_index8(d, t, v), data, vals, shape=(1, 8), dtype="uint32")
    missing = 2**32 - 1
    assert found[0].tolist() == [0, 2, 4, missing, 7, missing, 1, 3]


def test_replacing_runs_from_the_last_value_to_the_first() -> None:
    data = np.array([[5, 1, 5, 2, 7, 3, 4, 9]], np.float32)
    vals = np.array([[5, 8, 8, 8, 8, 8, 8, 5]], np.float32)

    def body(dst: Any, index: Any, t: Any, v: Any) -> None:
        nisa.nc_match_replace8(dst, t, v, -1.0, index)

    found, index = on_tiles(body, data, vals, outputs=2, shape=[(1, 8), (1, 8)], dtype=["float32", "int32"])
    assert found[0].tolist() == [-1, 1, -1, 2, 7, 3, 4, 9]
    assert index[0].tolist() == [2, -1, -1, -1, -1, -1, -1, 0]
