import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.testing import on_tiles

RNG = np.random.default_rng(11)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 128), st.integers(1, 30), st.sampled_from(["add", "average", "max"]))
def test_partitions_reduce_to_the_first(p: int, n: int, name: str) -> None:
    x = RNG.standard_normal((p, n)).astype(np.float32)
    found = on_tiles(
        lambda d, t: nisa.tensor_partition_reduce(d, getattr(nl, name), t), x, shape=(1, n), dtype="float32"
    )
    expected = {"add": np.sum, "average": np.mean, "max": np.max}[name](x, axis=0, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_partition_reduction_of_bits() -> None:
    x = RNG.integers(0, 255, (9, 4)).astype(np.uint8)
    found = on_tiles(
        lambda d, t: nisa.tensor_partition_reduce(d, nl.bitwise_or, t), x, shape=(1, 4), dtype="uint8"
    )
    np.testing.assert_array_equal(found, np.bitwise_or.reduce(x, axis=0, keepdims=True))


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_gathers_within_a_partition(dtype: str) -> None:
    x = RNG.integers(0, 99, (12, 20)).astype(dtype)
    index = RNG.integers(0, 20, (12, 7)).astype(np.uint32)
    found = on_tiles(lambda d, t, i: nisa.nc_n_gather(d, t, i), x, index, shape=(12, 7), dtype=dtype)
    np.testing.assert_array_equal(found, np.take_along_axis(x, index.astype(int), axis=1))


def test_local_gather_shares_a_list_in_groups_of_sixteen() -> None:
    x = RNG.standard_normal((32, 24)).astype(np.float32)
    index = RNG.integers(0, 12, (32, 2)).astype(np.uint16)
    found = on_tiles(
        lambda d, t, i: nisa.local_gather(d, t, i, num_elem_per_idx=2, num_valid_indices=20),
        x, index, shape=(32, 40), dtype="float32",
    )  # fmt: skip
    for p in range(32):
        group = p // 16 * 16
        for i in range(20):
            start = 2 * int(index[group + i % 16, i // 16])
            np.testing.assert_array_equal(found[p, 2 * i : 2 * i + 2], x[p, start : start + 2])


def test_bounds_of_segments() -> None:
    ids = np.array([[0, 1, 1, 2, 2, 2, 0, 3, 3]], np.int32)
    found = on_tiles(lambda d, s: nisa.sequence_bounds(d, s), ids, shape=(1, 2, 9), dtype="int32")
    assert found[0, 0].tolist() == [9, 1, 1, 3, 3, 3, 9, 7, 7]
    assert found[0, 1].tolist() == [-1, 3, 3, 6, 6, 6, -1, 9, 9]


def test_gathers_write_into_parts_of_a_tile() -> None:
    x, index = RNG.standard_normal((16, 8)).astype(np.float32), RNG.integers(0, 8, (16, 1)).astype(np.uint16)

    def body(dst: nl.ndarray, t: nl.ndarray, i: nl.ndarray) -> None:
        nisa.memset(dst, 0.0)
        nisa.local_gather(dst[:, 4:20], t, i)

    found = on_tiles(body, x, index, shape=(16, 24), dtype="float32")
    np.testing.assert_array_equal(found[:, 4:20], x[:, index[:, 0]])
    assert not found[:, :4].any()
    assert not found[:, 20:].any()


def test_nonzero_elements_are_listed_and_counted() -> None:
    x = np.zeros((32, 5), np.float32)
    x[0, [1, 3]], x[16, 4], x[5] = 2.0, -1.0, 1.0

    def body(dst: nl.ndarray, t: nl.ndarray) -> None:
        nisa.memset(dst, 9)
        nisa.nonzero_with_count(dst, t, index_offset=10)

    found = on_tiles(body, x, shape=(32, 6), dtype="int32")
    assert found[0].tolist() == [11, 13, -1, -1, -1, 2]
    assert found[16].tolist() == [14, -1, -1, -1, -1, 1]
    assert (found[5] == 9).all()
