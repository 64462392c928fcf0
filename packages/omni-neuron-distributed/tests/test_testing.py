"""Ranks report results and errors, see the caller's world, and leave nothing behind."""

import multiprocessing
import os
import time

import pytest
import torch
import torch.distributed as dist

from omni_neuron.distributed.testing import RankError, run_ranks


class LocalError(Exception):
    """Raised in a rank, known only by this test module."""


class StubbornError(Exception):
    def __reduce__(self):
        raise TypeError("cannot cross")


def describe(rank, factor):
    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    threads = torch.get_num_threads()
    return rank * factor, total.item(), dist.get_world_size(), os.environ["RANK_NOTE"], threads


def fail(rank, kind):
    if rank == 1:
        match kind:
            case "raise":
                raise LocalError("no such weight")
            case "unpicklable":
                raise StubbornError("deep trouble")
            case "die":
                os._exit(7)
    dist.barrier()


def sleep_on_rank_zero(rank):
    if rank == 0:
        time.sleep(60)


def raise_everywhere(rank):
    raise ValueError(f"from {rank}")


@pytest.fixture(autouse=True)
def no_child_is_left():
    yield
    assert multiprocessing.active_children() == []


def test_results_come_by_rank_and_the_environment_is_the_callers(monkeypatch):
    monkeypatch.setenv("RANK_NOTE", "set just now")
    results = run_ranks(3, describe, 10)
    assert results == [(10 * rank, 3.0, 3, "set just now", 1) for rank in range(3)]


def test_an_error_is_raised_again_with_its_traceback_while_others_wait():
    start = time.monotonic()
    with pytest.raises(LocalError, match="no such weight") as caught:
        run_ranks(2, fail, "raise")
    assert time.monotonic() - start < 20
    notes = "\n".join(caught.value.__notes__)
    assert "rank 1: Traceback" in notes
    assert 'raise LocalError("no such weight")' in notes


def test_every_failed_rank_is_in_the_notes():
    with pytest.raises(ValueError, match="from") as caught:
        run_ranks(2, raise_everywhere)
    notes = "\n".join(caught.value.__notes__)
    assert "ValueError: from 0" in notes
    assert "ValueError: from 1" in notes


def test_an_error_that_cannot_cross_is_told():
    with pytest.raises(RankError, match="rank 1 of 2 failed first") as caught:
        run_ranks(2, fail, "unpicklable")
    assert "StubbornError: deep trouble" in "\n".join(caught.value.__notes__)


def test_a_rank_that_dies_is_told_with_its_exit_code():
    with pytest.raises(RankError, match="rank 1 of 2 failed first") as caught:
        run_ranks(2, fail, "die")
    assert "rank 1: died with exit code 7" in caught.value.__notes__


def test_the_time_limit_names_the_late_ranks():
    with pytest.raises(TimeoutError, match=r"ranks \[0\] of 2 did not finish within 6 s"):
        run_ranks(2, sleep_on_rank_zero, timeout_s=6)
