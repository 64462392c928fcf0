"""Threads of one call: what ends, fails or hangs is seen by the caller, soon."""

import queue
import threading
import time

import pytest

from omni_neuron.distributed.loading import stages as module
from omni_neuron.distributed.loading.stages import stages


def nothing():
    pass


def never():
    return False


def running():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("stage-")]


def fails(owned):
    raise ValueError("broken")


def ends(owned):
    pass


def waits(owned):
    owned.wait_until(never)


def supervise(*bodies, done=never, step=nothing, stall_s=60):
    """Run a stage per body, each given the stages."""
    with stages("work") as owned:
        for body in bodies:
            owned.start(f"stage-{body.__name__}", lambda body=body: body(owned))
        owned.supervise("work", done, step, stall_s)


def test_the_caller_steps_until_the_work_is_done():
    seen, steps = [], []

    def work(owned):
        for number in range(3):
            seen.append(number)
            owned.moved()

    supervise(work, done=lambda: len(seen) == 3, step=lambda: steps.append(len(seen)))
    assert steps[-1] == 3
    assert not running()


def test_the_first_failure_stops_all_and_reaches_the_caller():
    def takes(owned):
        owned.take(queue.Queue())

    start = time.monotonic()
    with pytest.raises(ValueError, match="broken"):
        supervise(takes, waits, fails)
    assert not running()
    assert time.monotonic() - start < 5


def test_a_failure_wins_over_work_that_looks_done():
    def late():
        deadline = time.monotonic() + 10
        while running() and time.monotonic() < deadline:
            time.sleep(0.01)

    with pytest.raises(ValueError, match="broken"):
        supervise(fails, step=late, done=lambda: not running())


def test_a_failing_step_of_the_caller_stops_all():
    def step():
        raise KeyError("callback")

    with pytest.raises(KeyError):
        supervise(waits, step=step)
    assert not running()


def test_threads_that_end_too_early_are_seen():
    with pytest.raises(RuntimeError, match="All threads of work ended before the work did"):
        supervise(ends)


def test_standing_still_has_a_limit():
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"work must not stand still for 0\.3 s"):
        supervise(waits, stall_s=0.3)
    assert 0.3 <= time.monotonic() - start < 5


def test_a_thread_that_does_not_end_is_named(monkeypatch):
    monkeypatch.setattr(module, "JOIN_S", 0.2)
    release = threading.Event()

    def stuck(owned):
        release.wait(30)

    try:
        with pytest.raises(TimeoutError, match="must not stand still") as caught:
            supervise(stuck, stall_s=0.2)
        assert caught.value.__notes__ == ["Threads of work are stuck: stage-stuck."]
        with pytest.raises(TimeoutError, match=r"must end within .*: stage-stuck"):
            supervise(stuck, done=lambda: True)
    finally:
        release.set()
