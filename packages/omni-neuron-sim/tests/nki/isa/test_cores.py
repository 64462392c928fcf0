"""Two cores of one logical core: shared HBM, barriers, exchanges, and what goes wrong without them."""

from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import KernelError, simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

X = np.arange(256 * 8, dtype=np.float32).reshape(256, 8)


def halves(x: Any, barrier: bool) -> Any:
    """Each core stages its half, then stores the other core's half of the staging buffer."""
    me = nl.program_id(0)
    staged = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm, name="staged")
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(staged[nl.ds(128 * me, 128)], x[nl.ds(128 * me, 128)])
    if barrier:
        nisa.core_barrier(staged, (0, 1))
    other = 1 - me
    nisa.dma_copy(out[nl.ds(128 * other, 128)], staged[nl.ds(128 * other, 128)])
    return out


def test_a_barrier_orders_writes_to_shared_memory() -> None:
    np.testing.assert_array_equal(simulate(halves, X, True, lnc=2), X)


def test_without_it_there_is_a_race() -> None:
    with pytest.raises(
        KernelError, match=r"with no nisa.core_barrier between them|was never written"
    ) as caught:
        simulate(halves, X, False, lnc=2)
    assert caught.value.rule in ("race", "uninitialised")


@pytest.mark.parametrize("writer", [0, 1])
def test_writing_what_the_other_core_reads_is_a_race(writer: int) -> None:
    def kernel(x: Any, barrier: bool) -> Any:
        shared = nl.ndarray((128, 8), x.dtype, buffer=nl.shared_hbm, name="shared")
        out = nl.ndarray((2, 128, 8), x.dtype, buffer=nl.shared_hbm)
        me = nl.program_id(0)
        if me == 0:
            nisa.dma_copy(shared, x[0:128])
        nisa.core_barrier(shared, (0, 1))
        nisa.dma_copy(out[me], shared)
        if barrier:
            nisa.core_barrier(shared, (0, 1))
        if me == writer:
            nisa.dma_copy(shared, x[128:256])
        return out

    np.testing.assert_array_equal(simulate(kernel, X, True, lnc=2), np.stack([X[:128]] * 2))
    words = ["core 0 writes what core 1 read ", "core 0 reads what core 1 wrote "][
        writer
    ]  # core 1 goes on first
    with pytest.raises(KernelError, match=words) as caught:
        simulate(kernel, X, False, lnc=2)
    assert caught.value.rule == "race"


def test_tiles_are_exchanged() -> None:
    def kernel(x: Any) -> Any:
        me, other = nl.program_id(0), 1 - nl.program_id(0)
        mine, theirs = nl.ndarray((128, 8), x.dtype), nl.ndarray((128, 8), x.dtype)
        nisa.dma_copy(mine, x[nl.ds(128 * me, 128)])
        nisa.sendrecv(mine, theirs, other, other, pipe_id=0)
        nisa.tensor_tensor(mine, mine, theirs, nl.add)
        out = nl.ndarray((2, 128, 8), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out[me], mine)
        return out

    found = simulate(kernel, X, lnc=2)
    np.testing.assert_array_equal(found, np.stack([X[:128] + X[128:]] * 2))


def test_a_barrier_that_one_core_skips_is_a_deadlock() -> None:
    def kernel(x: Any) -> Any:
        out = nl.zeros((2, 2), nl.float32, buffer=nl.shared_hbm)
        if nl.program_id(0) == 0:
            nisa.core_barrier(out, (0, 1))
        return out

    with pytest.raises(KernelError) as caught:
        simulate(kernel, X, lnc=2)
    assert caught.value.rule == "deadlock"
    assert "rank 0 core 0 waits in nisa.core_barrier at" in str(caught.value)
    assert "for rank 0 core 1 (finished)" in str(caught.value)


@pytest.mark.parametrize(
    ("pipes", "rule"), [((0, 0), None), ((0, 1), "deadlock")], ids=["one pipe", "two pipes"]
)
def test_pipes_pair_the_calls(pipes: tuple[int, int], rule: str | None) -> None:
    def kernel(x: Any) -> Any:
        me = nl.program_id(0)
        a, b = nl.zeros((32, 8), x.dtype), nl.ndarray((32, 8), x.dtype)
        nisa.sendrecv(a, b, 1 - me, 1 - me, pipes[me])
        return None

    if rule is None:
        simulate(kernel, X, lnc=2)
    else:
        with pytest.raises(KernelError, match=r"waits in nisa.sendrecv") as caught:
            simulate(kernel, X, lnc=2)
        assert caught.value.rule == rule


def test_cores_allocate_shared_memory_in_step() -> None:
    def kernel(x: Any) -> Any:
        shape = (2, 2) if nl.program_id(0) == 0 else (4, 2)
        return nl.zeros(shape, nl.float32, buffer=nl.shared_hbm, name="out")

    with pytest.raises(KernelError, match="on the other core") as caught:
        simulate(kernel, X, lnc=2)
    assert caught.value.rule == "lnc-divergence"


def test_shared_memory_is_found_by_name() -> None:
    def kernel(x: Any) -> Any:
        if nl.program_id(0) == 0:
            nl.ndarray((8, 8), x.dtype, buffer=nl.shared_hbm, name="mine alone")
        both = nl.ndarray((2, 128, 8), x.dtype, buffer=nl.shared_hbm, name="both")
        nisa.dma_copy(both[nl.program_id(0)], x[nl.ds(128 * nl.program_id(0), 128)])
        return both

    np.testing.assert_array_equal(simulate(kernel, X, lnc=2).reshape(256, 8), X)


def test_program_ids_and_grids() -> None:
    def kernel(x: Any) -> Any:
        assert nl.num_programs(0) == 2
        assert nl.program_ndim() == 1
        return nl.program_id(0)

    assert simulate(kernel, X, lnc=2) == 0
    assert simulate(lambda x: (nl.program_ndim(), nl.num_programs(), nl.program_id()), X) == (0, 1, 0)


def test_gpsimd_dma_carries_little() -> None:
    def kernel(x: Any, columns: int) -> None:
        me = nl.program_id(0)
        a, b = nl.zeros((32, columns), x.dtype), nl.ndarray((32, columns), x.dtype)
        nisa.sendrecv(a, b, 1 - me, 1 - me, 0, dma_engine=nisa.dma_engine.gpsimd_dma)

    simulate(kernel, X, 256, lnc=2)
    with pytest.raises(KernelError, match="carries 1024 bytes per partition"):
        simulate(kernel, X, 257, lnc=2)


def test_cores_exchange_tiles_of_one_shape() -> None:
    def kernel(x: Any, other: int) -> None:
        me = nl.program_id(0)
        columns = other if me else 8
        a, b = nl.zeros((32, columns), x.dtype), nl.ndarray((32, columns), x.dtype)
        nisa.sendrecv(a, b, 1 - me, 1 - me, 0)

    simulate(kernel, X, 8, lnc=2)
    with pytest.raises(KernelError, match=r"sends \[32, (8|4)\] float32 and core . \[32, (8|4)\]") as caught:
        simulate(kernel, X, 4, lnc=2)
    assert caught.value.rule == "shape"


def test_a_core_sends_to_its_sibling_only() -> None:
    def kernel(x: Any, to: int) -> None:
        me = nl.program_id(0)
        a, b = nl.zeros((32, 8), x.dtype), nl.ndarray((32, 8), x.dtype)
        nisa.sendrecv(a, b, 1 - me if to < 0 else to, 1 - me, 0)

    simulate(kernel, X, -1, lnc=2)
    with pytest.raises(KernelError, match="core 0 sends to 0 and receives from 1: both are 1"):
        simulate(kernel, X, 0, lnc=2)


@pytest.mark.parametrize("different", [False, True])
def test_both_cores_may_do_the_same_work(different: bool) -> None:
    """Each writes a scratch tensor and reads it, without meeting; what they write must be the same."""

    def kernel(x: Any) -> Any:
        scratch = nl.ndarray((128, 8), x.dtype, buffer=nl.shared_hbm, name="scratch")
        out = nl.ndarray((128, 8), x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x[0:128])
        nisa.tensor_scalar(tile, tile, nl.add, float(nl.program_id(0)) if different else 1.0)
        nisa.dma_copy(scratch, tile)
        nisa.dma_copy(tile, scratch)
        nisa.dma_copy(out, tile)
        return out

    if different:
        with pytest.raises(KernelError, match=r"no nisa\.core_barrier") as caught:
            simulate(kernel, X, lnc=2)
        assert caught.value.rule == "race"
    else:
        np.testing.assert_array_equal(simulate(kernel, X, lnc=2), X[:128] + 1)


def test_rows_that_a_scatter_skips_are_no_race() -> None:
    """Each core scatters its rows; the other core's, and row 0 with them, are out of its range."""

    def kernel(table: Any, rows: Any) -> None:
        me = nl.program_id(0)
        tile = nl.ndarray((4, 8), table.dtype)
        nisa.memset(tile, float(me + 1))
        at = table.ap([[8, 4], [1, 8]], vector_offset=nl.load(rows[me]))
        nisa.dma_copy(at, tile, oob_mode=nisa.oob_mode.skip)

    table = np.zeros((8, 8), np.float32)
    rows = np.array([[0, 1, 99, 99], [99, 4, 5, 6]], np.int32)[..., None]
    simulate(kernel, table, rows, lnc=2)
    np.testing.assert_array_equal(table[:, 0], [1, 1, 0, 0, 2, 2, 2, 0])


def test_cores_find_shared_memory_by_its_line_where_it_has_no_name() -> None:
    def kernel(x: Any) -> Any:
        me = nl.program_id(0)
        if me == 0:
            scratch = nl.ndarray((64, 8), x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(scratch, x[0:64])
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        if me == 0:
            nisa.dma_copy(out[0:64], scratch)
        else:
            nisa.dma_copy(out[64:256], x[64:256])
        return out

    np.testing.assert_array_equal(simulate(kernel, X, lnc=2), X)
