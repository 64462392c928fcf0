# ruff: noqa: E501 - one case a line
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.sim import KernelError, KernelWarning, PerRank, simulate
from omni_neuron.sim.nki import collectives as ncc
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

RNG = np.random.default_rng(13)


def run(
    inputs: list[np.ndarray],
    call: Callable[[Any, Any], Any],
    shape: tuple[int, ...],
    lnc: int = 1,
    buffer: Any = nl.shared_hbm,
) -> list[np.ndarray]:
    """Stage each rank's input, `call(source, destination)`, return the destinations."""

    def kernel(x: Any) -> Any:
        source = nl.ndarray(x.shape, x.dtype, buffer=buffer, name="source")
        destination = nl.ndarray(shape, x.dtype, buffer=buffer, name="destination")
        out = nl.ndarray(shape, x.dtype, buffer=nl.shared_hbm)
        if nl.program_id(0) == 0 or buffer is nl.sbuf:
            nisa.dma_copy(source, x)
        if lnc == 2:
            nisa.core_barrier(out, (0, 1))
        call(source, destination)
        if nl.program_id(0) == 0:
            nisa.dma_copy(out, destination)
        return out

    found = simulate(kernel, PerRank(inputs), ranks=len(inputs), lnc=lnc)
    return found if len(inputs) > 1 else [found]


def drawn(ranks: int, rows: int = 8, columns: int = 4) -> list[np.ndarray]:
    return [RNG.integers(-9, 10, (rows, columns)).astype(np.float32) for _ in range(ranks)]


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize(("name", "reduce"), [("add", np.sum), ("maximum", np.max), ("minimum", np.min)])
@pytest.mark.parametrize("buffer", [nl.shared_hbm, nl.sbuf], ids=str)
def test_all_reduce(name: str, reduce: Any, lnc: int, buffer: Any) -> None:
    x = drawn(4)
    groups = ncc.ReplicaGroup(((0, 2), (1, 3)))
    found = run(x, lambda s, d: ncc.all_reduce([s], [d], groups, getattr(nl, name)), (8, 4), lnc, buffer)
    for rank, partner in ((0, 2), (1, 3), (2, 0), (3, 1)):
        np.testing.assert_array_equal(found[rank], reduce([x[rank], x[partner]], axis=0))


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(4)))
def test_gathers_follow_the_order_of_the_group(order: list[int]) -> None:
    x = drawn(4)
    groups = ncc.ReplicaGroup((tuple(order),))
    for found in run(x, lambda s, d: ncc.all_gather([s], [d], groups, 0), (32, 4)):
        np.testing.assert_array_equal(found, np.concatenate([x[r] for r in order]))
    scattered = run(x, lambda s, d: ncc.reduce_scatter([s], [d], groups, 0, nl.add), (2, 4))
    exchanged = run(x, lambda s, d: ncc.all_to_all([s], [d], groups, 0), (8, 4))
    for position, rank in enumerate(order):
        rows = slice(2 * position, 2 * position + 2)
        np.testing.assert_array_equal(scattered[rank], sum(x)[rows])
        np.testing.assert_array_equal(exchanged[rank], np.concatenate([x[r][rows] for r in order]))


def test_gathers_in_sbuf_may_join_columns() -> None:
    x = drawn(2)
    groups = ncc.ReplicaGroup(((0, 1),))
    for found in run(x, lambda s, d: ncc.all_gather([s], [d], groups, 1), (8, 8), buffer=nl.sbuf):
        np.testing.assert_array_equal(found, np.concatenate(x, axis=1))


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 8).flatmap(lambda n: st.permutations(range(n))))
def test_a_ring_shows_every_shard_to_every_rank(order: list[int]) -> None:
    """After s steps position r holds the shard of position (r - s) mod W, and the register says whose."""
    ranks = len(order)
    x = [np.full((1, 2), rank, np.float32) for rank in range(ranks)]
    groups = ncc.ReplicaGroup((tuple(order),))

    def kernel(mine: Any) -> Any:
        out = nl.ndarray((ranks, 2), mine.dtype, buffer=nl.shared_hbm)
        buffers = [nl.ndarray((1, 2), mine.dtype, buffer=nl.shared_hbm, name=f"b{i}") for i in range(2)]
        nisa.dma_copy(buffers[0], mine)
        for step in range(ranks):
            whose = ncc.collective_permute_implicit_current_processing_rank_id(step, groups)
            nisa.dma_copy(out.ap([[2, 1], [1, 2]], scalar_offset=whose), buffers[step % 2])
            if step < ranks - 1:
                ncc.collective_permute_implicit([buffers[step % 2]], [buffers[(step + 1) % 2]], groups)
        return out

    for found in simulate(kernel, PerRank(x), ranks=ranks):
        np.testing.assert_array_equal(
            found, np.repeat(np.arange(ranks, dtype=np.float32)[:, None], 2, axis=1)
        )


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_ring_of_rank_pairs_reuses_buffers_that_both_cores_read(ranks: int) -> None:
    """A collective comes after what both cores did before it, so the rotating buffers need no barrier."""
    x = [RNG.standard_normal((128, 4)).astype(np.float32) for _ in range(ranks)]
    groups = ncc.ReplicaGroup((tuple(range(ranks)),))

    def kernel(mine: Any) -> Any:
        me = nl.program_id(0)
        out = nl.ndarray((2, 128, 4), mine.dtype, buffer=nl.shared_hbm)
        buffers = [nl.ndarray((128, 4), mine.dtype, buffer=nl.shared_hbm, name=f"b{i}") for i in range(2)]
        nisa.dma_copy(buffers[0][nl.ds(64 * me, 64)], mine[nl.ds(64 * me, 64)])
        nisa.core_barrier(buffers[0], (0, 1))
        total = nl.zeros((128, 4), nl.float32)
        for step in range(ranks):
            if step < ranks - 1:
                ncc.collective_permute_implicit([buffers[step % 2]], [buffers[(step + 1) % 2]], groups)
            tile = nl.load(buffers[step % 2])
            nisa.tensor_tensor(total, total, tile, nl.add)
        nisa.dma_copy(out[me], total)
        return out

    for found in simulate(kernel, PerRank(x), ranks=ranks, lnc=2):
        np.testing.assert_allclose(found, np.stack([sum(x)] * 2), atol=1e-5)


def test_explicit_and_reducing_permutes() -> None:
    x = drawn(3)
    pairs = ((0, 1), (1, 2), (2, 0))
    found = run(x, lambda s, d: ncc.collective_permute([s], [d], pairs), (8, 4))
    for source, target in pairs:
        np.testing.assert_array_equal(found[target], x[source])
    groups = ncc.ReplicaGroup(((0, 1, 2),))
    found = run(x, lambda s, d: ncc.collective_permute_implicit_reduce([s], [s], [d], groups, nl.add), (8, 4))
    for source, target in pairs:
        np.testing.assert_array_equal(found[target], 2 * x[source])


def test_ranks_know_who_they_are() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((1, 2), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x.select(0, ncc.rank_id()))
        return out

    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    for rank, found in enumerate(simulate(kernel, table, ranks=3)):
        np.testing.assert_array_equal(found[0], table[rank])


GROUP = ncc.ReplicaGroup(((0, 1),))
BROKEN: dict[str, tuple[str, str, Callable[[Any, Any, int], Any]]] = {
    "different collectives": ("collective", "mismatch", lambda s, d, r: ncc.all_reduce([s], [d], GROUP, nl.add) if r else ncc.collective_permute_implicit([s], [d], GROUP)),
    "different operations": ("collective", "mismatch", lambda s, d, r: ncc.all_reduce([s], [d], GROUP, nl.add if r else nl.maximum)),
    "different shapes": ("collective", "mismatch", lambda s, d, r: ncc.all_reduce([s[0:4] if r else s], [d[0:4] if r else d], GROUP, nl.add)),
    "one rank stays away": ("deadlock", r"rank 0 core 0 waits in ncc.all_reduce of group \(0, 1\) at .*test_operations.py:\d+ for rank 1 core 0 \(finished\)", lambda s, d, r: None if r else ncc.all_reduce([s], [d], GROUP, nl.add)),
    "different groups": ("deadlock", "rank 0 core 0 waits .* rank 1 core 0 waits", lambda s, d, r: ncc.all_reduce([s], [d], ncc.ReplicaGroup(((0, 1),) if r else ((1, 0),)), nl.add)),
    "a rank in no group": ("collective", "rank 1 is in none", lambda s, d, r: ncc.all_reduce([s], [d], ncc.ReplicaGroup(((0,),)), nl.add)),
    "ranges": ("collective", "range objects", lambda s, d, r: ncc.all_reduce([s], [d], ncc.ReplicaGroup([range(2)]), nl.add)),
    "a rank twice": ("collective", "stands in one group, once", lambda s, d, r: ncc.ReplicaGroup(((0, 1), (1,)))),
    "no rank at all": ("collective", "stands in one group, once", lambda s, d, r: ncc.all_reduce([s], [d], ncc.ReplicaGroup(()), nl.add)),
    "a rank beyond the launch": ("collective", "beyond the 2 of this launch", lambda s, d, r: ncc.all_reduce([s], [d], ncc.ReplicaGroup(((0, 1, 2),)), nl.add)),
    "an operation that does not reduce": ("operator", "use add, minimum, maximum", lambda s, d, r: ncc.all_reduce([s], [d], GROUP, nl.multiply)),
    "the wrong dimension": ("collective", "collective_dim = 1", lambda s, d, r: ncc.all_gather([s], [d], GROUP, 1)),
    "a channel too many": ("collective", "one tensor per channel", lambda s, d, r: ncc.collective_permute_implicit([s], [d], GROUP, [1])),
    "half a permute": ("collective", "sends once and receives once", lambda s, d, r: ncc.collective_permute([s], [d], ((0, 1),))),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_collectives_are_reported(name: str) -> None:
    rule, words, call = BROKEN[name]

    def with_rank(source: Any, destination: Any) -> Any:
        from omni_neuron.sim.execution.core import current_core

        return call(source, destination, current_core().rank)

    run(drawn(2), lambda s, d: ncc.all_reduce([s], [d], GROUP, nl.add), (8, 4))
    with pytest.raises(KernelError, match=words) as caught:
        run(drawn(2), with_rank, (8, 4))
    assert caught.value.rule == rule


def test_arguments_of_the_kernel_are_staged_first() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        ncc.all_reduce([x], [out], GROUP, nl.add)
        return out

    with pytest.raises(KernelError, match="stage it in an internal tensor"):
        simulate(kernel, drawn(1)[0], ranks=2)


def test_results_are_staged_too() -> None:
    def kernel(x: Any, copied: bool) -> Any:
        a, b = (nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm, name=n) for n in "ab")
        nisa.dma_copy(a, x)
        ncc.all_reduce([a], [b], GROUP, nl.add)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, b)
        return out if copied else b

    x = drawn(1)[0]
    np.testing.assert_array_equal(simulate(kernel, x, True, ranks=2)[1], 2 * x)
    with pytest.raises(KernelError, match="which a collective moved"):
        simulate(kernel, x, False, ranks=2)


def test_tensors_of_collectives_have_names_and_are_shared() -> None:
    def kernel(x: Any, name: str, buffer: Any) -> None:
        a, b = (nl.zeros((2, 2), nl.float32, buffer=buffer, name=name and name + n) for n in "ab")
        ncc.all_to_all([a], [b], ncc.ReplicaGroup(((0,),)), 0)

    with pytest.warns(KernelWarning, match="has no name"):
        simulate(kernel, drawn(1)[0], "", nl.shared_hbm)
    with pytest.raises(KernelError, match="must be in shared_hbm"):
        simulate(kernel, drawn(1)[0], "buffer", nl.hbm)


def test_cores_that_have_not_met_race_with_a_collective() -> None:
    def kernel(x: Any, barrier: bool) -> Any:
        source = nl.ndarray((8, 4), x.dtype, buffer=nl.shared_hbm, name="source")
        destination = nl.ndarray((8, 4), x.dtype, buffer=nl.shared_hbm, name="destination")
        out = nl.ndarray((8, 4), x.dtype, buffer=nl.shared_hbm)
        half = nl.ds(4 * nl.program_id(0), 4)
        nisa.dma_copy(source[half], x[half])
        if barrier:
            nisa.core_barrier(source, (0, 1))
        ncc.all_reduce([source], [destination], GROUP, nl.add)
        nisa.dma_copy(out[half], destination[half])
        return out

    x = drawn(1)[0]
    np.testing.assert_array_equal(simulate(kernel, x, True, ranks=2, lnc=2)[0], 2 * x)
    with pytest.raises(KernelError, match=r"race|never written"):
        simulate(kernel, x, False, ranks=2, lnc=2)
