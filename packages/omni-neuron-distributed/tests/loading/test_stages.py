"""Threads of one call: what ends, fails or hangs is seen by the caller, soon."""

import queue
import threading
import time

import pytest

from omni_neuron.distributed.loading import stages as module
from omni_neuron.distributed.loading.stages import stages


def nothing():
    pass


def running():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("stage-")]


def test_the_caller_steps_until_the_work_is_done():
    seen = []
    with stages("work") as owned:

        def work():
            for number in range(3):
                seen.append(number)
                owned.moved()

        owned.start("stage-a", work)
        owned.supervise("work", lambda: len(seen) == 3, nothing, 5)
    assert not running()


def test_the_first_failure_stops_all_and_reaches_the_caller():
    items = queue.Queue()
    start = time.monotonic()

    def fail():
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), stages("work") as owned:
        owned.start("stage-waits", lambda: owned.take(items))
        owned.start("stage-blocked", lambda: owned.wait_until(lambda: False))
        owned.start("stage-fails", fail)
        owned.supervise("work", lambda: False, nothing, 60)
    assert not running()
    assert time.monotonic() - start < 5


def test_a_failure_wins_over_work_that_looks_done():
    def fail():
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), stages("work") as owned:
        owned.start("stage-fails", fail)
        while running():
            time.sleep(0.01)
        owned.supervise("work", lambda: True, nothing, 60)


def test_a_failing_step_of_the_caller_stops_all():
    def step():
        raise KeyError("callback")

    with pytest.raises(KeyError), stages("work") as owned:
        owned.start("stage-waits", lambda: owned.wait_until(lambda: False))
        owned.supervise("work", lambda: False, step, 60)
    assert not running()


def test_threads_that_end_too_early_are_seen():
    with (
        pytest.raises(RuntimeError, match="All threads of work ended before the work did"),
        stages("work") as owned,
    ):
        owned.start("stage-a", nothing)
        owned.supervise("work", lambda: False, nothing, 60)


def test_standing_still_has_a_limit():
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"work must not stand still for 0\.3 s"), stages("work") as owned:
        owned.start("stage-waits", lambda: owned.wait_until(lambda: False))
        owned.supervise("work", lambda: False, nothing, 0.3)
    assert 0.3 <= time.monotonic() - start < 5


def test_a_thread_that_does_not_end_is_named(monkeypatch):
    monkeypatch.setattr(module, "JOIN_S", 0.2)
    release = threading.Event()
    try:
        with pytest.raises(TimeoutError) as caught, stages("work") as owned:
            owned.start("stage-stuck", lambda: release.wait(30))
            owned.supervise("work", lambda: False, nothing, 0.2)
        assert caught.value.__notes__ == ["Threads of work are stuck: stage-stuck."]
        with pytest.raises(TimeoutError, match="must end within .*: stage-stuck"), stages("work") as owned:
            owned.start("stage-stuck", lambda: release.wait(30))
    finally:
        release.set()
