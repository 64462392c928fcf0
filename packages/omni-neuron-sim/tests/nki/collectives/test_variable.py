from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.sim import KernelError, PerRank, simulate
from omni_neuron.sim.nki import collectives as ncc
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

GROUP = ncc.ReplicaGroup(((0, 1, 2),))
counts = st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=3, max_size=3)


def run(call: Any, x: list[np.ndarray], tables: list[np.ndarray], **options: Any) -> list[Any]:
    """Each rank's rows and metadata; destinations of 12 rows that held -1."""

    def kernel(mine: Any, given: Any) -> Any:
        source = nl.ndarray(mine.shape, mine.dtype, buffer=nl.shared_hbm, name="source")
        destination = nl.full((12, 2), -1.0, mine.dtype, buffer=nl.shared_hbm, name="destination")
        table = nl.ndarray(given.shape, given.dtype, buffer=nl.shared_hbm, name="table")
        nisa.dma_copy(source, mine)
        nisa.dma_copy(table, given)
        call([source], [destination], GROUP, table, **options)
        results = [nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm) for t in (destination, table)]
        for result, tensor in zip(results, (destination, table), strict=True):
            nisa.dma_copy(result, tensor)
        return tuple(results)

    return simulate(kernel, PerRank(x), PerRank(tables), ranks=3)


def rows(rank: int) -> np.ndarray:
    return (100 * rank + np.arange(18, dtype=np.float32)).reshape(9, 2)


@settings(max_examples=15)
@given(counts)
def test_pieces_of_any_size_are_exchanged(sent: list[list[int]]) -> None:
    x = [rows(r) for r in range(3)]
    starts = [np.concatenate([[0], np.cumsum(s)[:-1]]) for s in sent]
    tables = [np.array([sent[r], starts[r], [7, 7, 7]], np.int32) for r in range(3)]
    for rank, (found, table) in enumerate(run(ncc.all_to_all_v, x, tables)):
        pieces = [x[r][starts[r][rank] : starts[r][rank] + sent[r][rank]] for r in range(3)]
        joined = np.concatenate(pieces)
        np.testing.assert_array_equal(found[: len(joined)], joined)
        assert (found[len(joined) :] == -1).all()
        assert table[2].tolist() == [sent[r][rank] for r in range(3)]


@settings(max_examples=10)
@given(st.lists(st.integers(0, 4), min_size=3, max_size=3))
def test_ranks_give_what_they_have(given_rows: list[int]) -> None:
    x = [rows(r) for r in range(3)]
    tables = [np.array([given_rows], np.int32)] * 3
    joined = np.concatenate([x[r][: given_rows[r]] for r in range(3)])
    for found, _ in run(ncc.all_gather_v, x, tables):
        np.testing.assert_array_equal(found[: len(joined)], joined)


def test_pieces_go_where_they_are_told() -> None:
    x = [rows(r) for r in range(3)]
    tables = [np.array([[1, 1, 1], [8, 0, 4]], np.int32)] * 3
    found, _ = run(ncc.all_gather_v, x, tables, has_rdispls=True)[0]
    np.testing.assert_array_equal(found[[8, 0, 4]], [x[r][0] for r in range(3)])
    assert (found[1:4] == -1).all()


def test_counts_that_do_not_fit_are_refused() -> None:
    x = [rows(r) for r in range(3)]
    uneven = [np.array([[1, 1, 1 + (r == 2)]], np.int32) for r in range(3)]
    with pytest.raises(KernelError, match="rank 0 expects 1 rows of rank 2"):
        run(ncc.all_gather_v, x, uneven)
    known = [np.array([[1, 1, 1], [0, 1, 2], [1, 1, 2 if r else 1]], np.int32) for r in range(3)]
    with pytest.raises(KernelError, match=r"rank 1 expects \[1, 1, 2\] rows"):
        run(ncc.all_to_all_v, x, known, recv_counts_known=True)
    with pytest.raises(KernelError, match="rows 8 to 10 of source"):
        run(ncc.all_to_all_v, x, [np.array([[2, 0, 0], [8, 0, 0], [0, 0, 0]], np.int32)] * 3)
