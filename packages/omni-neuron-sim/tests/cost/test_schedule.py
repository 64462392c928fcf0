from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import profile
from omni_neuron.sim.cost.schedule import Gaps, Slot
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

X = np.ones((128, 512), np.float32)
VECTOR, SCALAR = 512 / 0.96e9, 512 / 1.2e9


def slots(body: Any, **options: Any) -> list[Slot]:
    def kernel(x: Any) -> None:
        body()

    return profile(kernel, X, target="trn2", **options).timelines[0].slots


def tile(**where: Any) -> Any:
    return nl.ndarray((128, 512), nl.float32, **where)


def test_engines_work_side_by_side_and_each_in_order() -> None:
    def body() -> None:
        a, b = tile(), tile()
        nisa.memset(a, 1.0)
        nisa.memset(b, 1.0)
        nisa.activation(tile(), nl.exp, a)
        nisa.activation(tile(), nl.exp, b)

    first, second, third, fourth = slots(body)
    assert (first.start_s, second.start_s) == (0, pytest.approx(VECTOR))
    assert third.start_s == pytest.approx(VECTOR)  # beside the second fill
    assert fourth.start_s == pytest.approx(2 * VECTOR)
    assert [s.waits_for for s in (first, second, third, fourth)] == [-1, 0, 0, 1]


@pytest.mark.parametrize("places", [(0, 0), (0, 2048), (None, None)], ids=str)
def test_a_shared_address_makes_a_write_wait_for_the_reader(places: tuple[int | None, ...]) -> None:
    def body() -> None:
        for place in places:
            a = tile() if place is None else tile(address=(0, place))
            nisa.memset(a, 1.0)
            nisa.activation(tile(), nl.exp, a)

    _, reader, second, _ = slots(body)
    assert second.start_s == pytest.approx(reader.finish_s if places == (0, 0) else VECTOR)


def test_parts_of_a_tensor_do_not_wait_for_each_other() -> None:
    def body() -> None:
        a = tile()
        nisa.memset(a[:, 0:256], 1.0)
        nisa.memset(a[:, 256:512], 1.0)
        nisa.activation(tile()[:, 0:256], nl.exp, a[:, 0:256])

    _, second, third = slots(body)
    assert third.start_s == pytest.approx(second.start_s)


def test_psum_has_only_its_banks() -> None:
    """Nine products whose readers are slow: the ninth waits until the first bank is free."""

    def body() -> None:
        a = nl.ndarray((128, 128), nl.bfloat16)
        nisa.memset(a, 1.0)
        banks = []
        for _ in range(9):
            psum = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
            nisa.nc_matmul(psum[:, 0:128], a, a)
            banks.append(psum)
            nisa.reciprocal(nl.ndarray((128, 128), nl.float32), psum[:, 0:128])

    found = [s for s in slots(body) if s.engine == "tensor"]
    readers = [s for s in slots(body) if s.event.opcode == "reciprocal"]
    assert found[8].start_s == pytest.approx(readers[0].finish_s)


def test_a_waiting_store_does_not_hold_up_a_load() -> None:
    def kernel(x: Any) -> Any:
        a, b = tile(), tile()
        out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(a, x)
        nisa.reciprocal(a, a)
        nisa.dma_copy(out, a)
        nisa.dma_copy(b, x)
        return out

    load, _, store, second = profile(kernel, X, target="trn2").timelines[0].slots
    assert second.start_s == pytest.approx(load.start_s + load.busy_s)
    assert second.start_s < store.start_s


def test_gaps_are_filled_from_the_front() -> None:
    gaps = Gaps()
    assert gaps.take(5.0, 2.0, 0) == (5.0, -1)
    assert gaps.take(0.0, 3.0, 1) == (0.0, -1)
    assert gaps.take(0.0, 2.0, 2) == (3.0, 1)
    assert gaps.take(0.0, 1.0, 3) == (7.0, 0)


def test_cores_wait_for_each_other() -> None:
    def kernel(x: Any) -> None:
        shared = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
        if nl.program_id(0) == 1:
            a = tile()
            nisa.memset(a, 1.0)
            nisa.reciprocal(a, a)
            nisa.dma_copy(shared, a)
        nisa.core_barrier(shared, (0, 1))

    first, second = profile(kernel, X, lnc=2, target="trn2").timelines
    written = second.slots[-2]
    assert written.event.opcode == "dma_copy"
    assert [t.slots[-1].start_s for t in (first, second)] == [pytest.approx(written.finish_s)] * 2
    # the barrier names a tensor of 512 columns and touches none of them
    assert [t.slots[-1].busy_s for t in (first, second)] == [pytest.approx(64 / 1.2e9)] * 2


def test_a_transpose_by_dma_does_not_run_beside_a_collective() -> None:
    from omni_neuron.sim.nki import collectives as ncc

    def kernel(x: Any) -> None:
        a, b = (nl.zeros((128, 512), nl.float32, buffer=nl.shared_hbm) for _ in range(2))
        ncc.collective_permute_implicit([a], [b], ncc.ReplicaGroup(((0, 1),)))
        nisa.dma_transpose(nl.ndarray((64, 128), nl.float32), x[:, 0:64])
        nisa.dma_copy(nl.ndarray((128, 64), nl.float32), x[:, 0:64])

    collective, transpose, copy = profile(kernel, X, ranks=2, target="trn2").timelines[0].slots
    assert transpose.start_s == pytest.approx(collective.finish_s)
    assert copy.start_s < collective.finish_s


@pytest.mark.parametrize("engine", ["dma", "vector"])
def test_what_is_found_by_an_index_waits_for_the_index(engine: str) -> None:
    def body() -> None:
        at, out = nl.ndarray((1, 1), nl.int32), nl.ndarray((1, 512), nl.float32)
        nisa.iota(at, [[0, 1]], offset=2)
        if engine == "dma":
            nisa.dma_copy(out, nl.ones((4, 512), nl.float32, buffer=nl.hbm).vector_select(0, at))
        else:
            nisa.tensor_copy(out[:, 0:1], nl.shared_identity_matrix(4)[0:1].select(1, at))

    index, found = slots(body)
    assert found.start_s >= index.finish_s > 0
