"""Views against numpy's, on a tensor that counts its elements."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.sim import KernelError, nki, simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

COUNT = np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8)


def seen(view: Callable[[Any], Any], array: np.ndarray = COUNT, on_chip: bool = False) -> np.ndarray:
    """What a kernel sees through a view of `array`."""

    def kernel(x: Any) -> Any:
        if on_chip:
            tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(tile, x)
            x = tile
        found = view(x)
        out = nl.ndarray(found.shape, found.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, found)
        return out

    return simulate(kernel, array)


KEYS = [
    np.s_[1], np.s_[1:3], np.s_[:, 2], np.s_[..., 3], np.s_[-1], np.s_[:, 1:6:2], np.s_[1:, :, 2:7],
    np.s_[:, -3:],
    np.s_[2, 3], np.s_[0, ..., 1:2],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_hbm_is_indexed_like_numpy(key: Any) -> None:
    np.testing.assert_array_equal(seen(lambda x: x[key]), COUNT[key])


@pytest.mark.parametrize(
    ("key", "shape"),
    [(np.s_[1], (1, 6, 8)), (np.s_[:, 2], (4, 8)), (np.s_[1:3, 2, 3], (2, 1)), (np.s_[:, :, 5], (4, 6))],
    ids=str,
)
def test_on_chip_the_partition_stays_and_two_dimensions_stay(key: Any, shape: tuple[int, ...]) -> None:
    found = seen(lambda x: x[key], on_chip=True)
    assert found.shape == shape
    np.testing.assert_array_equal(found, COUNT[key].reshape(shape))


@given(st.data())
def test_dynamic_slices_mix_with_others(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, 5))
    size = data.draw(st.integers(1, 6 - start))
    np.testing.assert_array_equal(
        seen(lambda x: x[1:4, nl.ds(start, size), ::3]), COUNT[1:4, start : start + size, ::3]
    )


VIEWS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "slice": (lambda x: x.slice(1, 1, 6, 2), COUNT[:, 1:6:2]),
    "select": (lambda x: x.select(2, 3), COUNT[:, :, 3]),
    "permute": (lambda x: x.permute((0, 2, 1)), COUNT.transpose(0, 2, 1)),
    "expand": (lambda x: x.expand_dim(1), COUNT[:, None]),
    "squeeze": (lambda x: x.expand_dim(2).squeeze_dim(2), COUNT),
    "broadcast": (lambda x: x[:, 0:1].broadcast(1, 5), np.broadcast_to(COUNT[:, :1], (4, 5, 8))),
    "reshape_dim": (lambda x: x.reshape_dim(2, (-1, 4)), COUNT.reshape(4, 6, 2, 4)),
    "flatten": (lambda x: x.flatten_dims(1, 2), COUNT.reshape(4, 48)),
    "reshape": (lambda x: x.reshape((4, 12, 4)), COUNT.reshape(4, 12, 4)),
    "reshape of a part": (lambda x: x[:, 2:4].reshape((4, 16)), COUNT[:, 2:4].reshape(4, 16)),
    "rearrange": (
        lambda x: x.rearrange(("p", ("a", "b"), "c"), ("p", "c", ("a", "b")), {"b": 2}),
        COUNT.transpose(0, 2, 1),
    ),
    "rearrange splits": (
        lambda x: x.rearrange(("p", ("a", "b"), "c"), ("p", "b", "a", "c"), {"a": 3}),
        COUNT.reshape(4, 3, 2, 8).transpose(0, 2, 1, 3),
    ),
    "ap": (lambda x: x.ap([[48, 4], [2, 4]], offset=1), COUNT.reshape(4, 48)[:, 1:9:2]),
    "ap of a part keeps its offset": (
        lambda x: x.select(1, 2).ap([[48, 4], [1, 3]], offset=2),
        COUNT[:, 2, 2:5],
    ),
}


@pytest.mark.parametrize("on_chip", [False, True], ids=["hbm", "sbuf"])
@pytest.mark.parametrize("name", VIEWS)
def test_views_share_storage_and_show_what_numpy_shows(name: str, on_chip: bool) -> None:
    view, expected = VIEWS[name]
    np.testing.assert_array_equal(seen(view, on_chip=on_chip), expected)


def test_a_row_in_hbm_is_repeated_by_stride_zero() -> None:
    found = seen(lambda x: x.ap([[0, 128], [1, 8]], offset=8))
    np.testing.assert_array_equal(found, np.broadcast_to(COUNT[0, 1], (128, 8)))


def test_bytes_are_seen_as_another_dtype() -> None:
    found = seen(lambda x: x[0].view(nl.int16))
    np.testing.assert_array_equal(found, COUNT[0].view(np.int16))
    back = seen(lambda x: x[0].view(nl.int16).view(nl.float32)[:, 2:4])
    np.testing.assert_array_equal(back, COUNT[0, :, 2:4])
    through = seen(lambda x: x.ap([[96, 4], [1, 6]], offset=2, dtype=nl.int16))
    np.testing.assert_array_equal(through, COUNT.reshape(4, 48).view(np.int16)[:, 2:8])


def test_attributes_describe_the_view() -> None:
    def kernel(x: Any) -> Any:
        part = x[1:3, :, 2]
        assert (part.shape, part.strides, part.offset) == ((2, 6), (48, 8), 50)
        assert (part.ndim, part.size, part.dtype, part.buffer) == (2, 12, "float32", nl.shared_hbm)
        assert part.get_pattern() == [[48, 2], [8, 6]]
        assert not part.is_contiguous()
        assert x.is_contiguous()
        assert isinstance(part, nl.NkiTensor)
        assert isinstance(part, nl.ndarray)
        return 7

    assert simulate(kernel, COUNT) == 7


def test_run_time_offsets_come_from_registers_and_tensors() -> None:
    def kernel(x: Any, at: Any) -> Any:
        index = nl.ndarray((1, 1), nl.int32)
        nisa.dma_copy(index, at)
        out = nl.ndarray((3, 8), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out[0], x[1].select(0, index))
        nisa.dma_copy(out[1], x[1].ap([[8, 1], [1, 8]], scalar_offset=nisa.register_alloc(5)))
        nisa.dma_copy(out[2], x[1, nl.ds(index, 1)])
        return out

    found = simulate(kernel, COUNT, np.array([[3]], np.int32))
    np.testing.assert_array_equal(found, COUNT[1][[3, 5, 3]])


@given(st.lists(st.integers(0, 23), min_size=1, max_size=12))
def test_rows_are_gathered_and_scattered_by_vectors(rows: list[int]) -> None:
    table = COUNT.reshape(24, 8)
    index = np.array(rows, np.int32)[:, None]

    def kernel(x: Any, at: Any) -> Any:
        where = nl.ndarray(at.shape, at.dtype)
        nisa.dma_copy(where, at)
        tile = nl.ndarray((len(rows), 8), x.dtype)
        nisa.dma_copy(tile, x.vector_select(0, where))
        out = nl.zeros(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out.ap([[8, len(rows)], [1, 8]], vector_offset=where), tile)
        return out

    expected = np.zeros_like(table)
    expected[rows] = table[rows]
    np.testing.assert_array_equal(simulate(kernel, table, index), expected)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an index too large": (lambda x: x[4], "out-of-range"),
    "a slice too long": (lambda x: x[:, 0:7], "out-of-range"),
    "a dynamic slice too long": (lambda x: x[:, nl.ds(4, 3)], "out-of-range"),
    "too many indices": (lambda x: x[0, 0, 0, 0], "out-of-range"),
    "an empty slice": (lambda x: x[2:2], "out-of-range"),
    "a backward slice": (lambda x: x[::-1], "access-pattern"),
    "skipped partitions": (lambda x: x[0:4:2], "access-pattern"),
    "a partition stride": (lambda x: x.ap([[24, 4], [1, 8]]), "access-pattern"),
    "a permuted partition": (lambda x: x.permute((1, 0, 2)), "access-pattern"),
    "a broadcast partition": (lambda x: x[0:1].broadcast(0, 4), "access-pattern"),
    "a reshaped partition": (lambda x: x.reshape((8, 24)), "access-pattern"),
    "a reshape that copies": (lambda x: x.permute((0, 2, 1)).reshape((4, 48)), "access-pattern"),
    "elements that do not fill": (lambda x: x.reshape((4, 47)), "shape"),
    "a column index": (lambda x: x["a"], "language"),
    "an assignment": (lambda x: x.__setitem__(0, 1), "language"),
    "iteration": (lambda x: list(x), "language"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_views_that_the_machine_lacks_are_refused(name: str) -> None:
    view, rule = REFUSED[name]
    with pytest.raises(KernelError) as caught:
        seen(view, on_chip=True)
    assert caught.value.rule == rule
    assert caught.value.where.file == __file__


def test_reading_past_a_partition_or_the_tensor_is_refused_when_it_happens() -> None:
    np.testing.assert_array_equal(
        seen(lambda x: x.ap([[48, 4], [1, 8]], offset=40), on_chip=True), COUNT.reshape(4, 48)[:, 40:]
    )
    views = (
        lambda x: x.ap([[48, 4], [1, 50]]),
        lambda x: x.ap([[48, 5], [1, 8]]),
        lambda x: x.ap([[48, 4], [1, 8]], offset=41),
    )
    for view in views:
        with pytest.raises(KernelError, match="out-of-range"):
            seen(view, on_chip=True)
    with pytest.raises(KernelError, match="reaches element 192 of 192 in HBM"):
        seen(lambda x: x.ap([[1, 2]], offset=191))


def test_a_register_is_no_number() -> None:
    def kernel() -> None:
        nl.zeros((4, 4), nl.float32)[:, nisa.register_alloc(1) + 1]

    with pytest.raises(KernelError, match="no value while the kernel is traced"):
        simulate(kernel)


def test_the_module_can_stand_in_for_nki() -> None:
    assert nki.language is nl
    assert nki.isa is nisa


@pytest.mark.parametrize("group", [16, 32])
def test_trn3_gathers_along_the_free_dimension(group: int) -> None:
    """Offset i of a group of partitions comes from `index[i % G, i // G]`; the Tensor engine has groups of
    32."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 40)).astype(np.float32)
    index = rng.integers(0, 40, (32, 2)).astype(np.uint16)
    eye = np.eye(32, dtype=np.float32)

    def kernel(a: Any, at: Any, one: Any) -> Any:
        tile, where, unit = (nl.ndarray(t.shape, t.dtype) for t in (a, at, one))
        for to, source in ((tile, a), (where, at), (unit, one)):
            nisa.dma_copy(to, source)
        out = nl.ndarray((32, 20), nl.float32, buffer=nl.shared_hbm)
        result = nl.ndarray((32, 20), nl.float32)
        if group == 32:
            psum = nl.ndarray((32, 20), nl.float32, buffer=nl.psum)
            nisa.nc_matmul(psum, unit, tile.indirect(where, 20))
            nisa.tensor_copy(result, psum)
        else:
            nisa.tensor_copy(result, tile.indirect(where, 20))
        nisa.dma_copy(out, result)
        return out

    found = simulate(kernel, x, index, eye, target="trn3")
    for p in range(32):
        base = p // group * group
        columns = [int(index[base + i % group, i // group]) for i in range(20)]
        np.testing.assert_allclose(found[p], x[p, columns], rtol=1e-6)
    with pytest.raises(KernelError, match="needs trn3"):
        simulate(kernel, x, index, eye, target="trn2")


def test_a_run_time_offset_may_cross_the_rows_of_its_dimension() -> None:
    """value * the elements behind indirect_dim, whatever that dimension holds, within the tensor."""

    def kernel(x: Any, at: Any) -> Any:
        tile = nl.ndarray((2, 4), x.dtype)
        nisa.dma_copy(tile, x.ap([[4, 2], [1, 4]], scalar_offset=nl.load(at), indirect_dim=1))
        out = nl.ndarray((2, 4), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, tile)
        return out

    x = np.arange(3 * 5 * 4, dtype=np.float32).reshape(3, 5, 4)
    np.testing.assert_array_equal(simulate(kernel, x, np.array([[7]], np.int32)), x.reshape(15, 4)[7:9])
    with pytest.raises(KernelError, match="reaches element 63 of 60"):
        simulate(kernel, x, np.array([[14]], np.int32))
