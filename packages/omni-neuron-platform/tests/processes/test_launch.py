import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import pytest

from omni_neuron.platform.processes import launch
from omni_neuron.platform.processes.launch import (
    Launcher,
    all_or_none,
    cause_of_death,
    end,
    failure_at_start,
)


def _ready_then_wait(pipe: Connection) -> None:
    pipe.send("ready")
    time.sleep(300)


def _wait_for_a_peer(pipe: Connection) -> None:
    time.sleep(300)


def _hear_no_signal(pipe: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(300)


def _fail(pipe: Connection) -> None:
    raise SystemExit(3)


def _leave(pipe: Connection) -> None:
    raise SystemExit(0)


def _be_killed(pipe: Connection) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _refuse_to_end(pipe: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pipe.send("ready")
    time.sleep(300)


@pytest.fixture
def launcher() -> Launcher:
    return Launcher(multiprocessing.get_context("fork"))


def _start(launcher: Launcher, target: Callable[[Connection], None], name: str) -> Connection:
    reader, writer = launcher.Pipe(duplex=False)
    launcher.Process(target=target, args=(writer,), name=name, daemon=True).start()
    writer.close()
    return reader


def test_what_does_not_concern_processes_is_the_contexts(launcher: Launcher) -> None:
    assert launcher.get_start_method() == "fork"
    assert launcher.processes == []


@pytest.mark.parametrize("peer", [_wait_for_a_peer, _hear_no_signal])
@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (_fail, "w1 died (exit status 3)"),
        (_leave, "w1 died (exit status 0)"),
        (_be_killed, "w1 died (SIGKILL)"),
    ],
)
def test_a_worker_does_not_wait_for_a_dead_peer(
    launcher: Launcher,
    monkeypatch: pytest.MonkeyPatch,
    peer: Callable[[Connection], None],
    target: Callable[[Connection], None],
    reason: str,
) -> None:
    monkeypatch.setattr(launch, "REASON_S", 0.3)
    start = time.monotonic()

    def start_two() -> None:
        with all_or_none(launcher):
            waiting = _start(launcher, peer, "w0")
            _start(launcher, target, "w1")
            waiting.recv()

    with pytest.raises(EOFError):
        start_two()
    assert time.monotonic() - start < 10
    assert not any(process.is_alive() for process in launcher.processes)
    assert cause_of_death(launcher.died) == reason


def test_workers_that_are_ready_live_on(launcher: Launcher) -> None:
    with all_or_none(launcher):
        assert _start(launcher, _ready_then_wait, "w0").recv() == "ready"
    assert launcher.processes[0].is_alive()
    assert cause_of_death(launcher.processes) is None
    end(launcher.processes)


def test_a_failure_of_the_start_ends_workers_that_are_ready(launcher: Launcher) -> None:
    def start_and_fail() -> None:
        with all_or_none(launcher):
            _start(launcher, _ready_then_wait, "w0").recv()
            raise RuntimeError("no queue")

    with pytest.raises(RuntimeError, match="no queue"):
        start_and_fail()
    assert not launcher.processes[0].is_alive()


def test_a_worker_that_refuses_to_end_is_killed(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "TERMINATE_TIMEOUT_S", 0.5)
    _start(launcher, _refuse_to_end, "w0").recv()
    end(launcher.processes)
    assert cause_of_death(launcher.processes) == "w0 died (SIGKILL)"


def test_workers_that_refuse_to_end_share_one_limit(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "TERMINATE_TIMEOUT_S", 1.0)
    for name in ("w0", "w1", "w2"):
        _start(launcher, _refuse_to_end, name).recv()
    start = time.monotonic()
    end(launcher.processes)
    assert time.monotonic() - start < 2  # 1 s until the kill, and none after it
    assert not any(process.is_alive() for process in launcher.processes)


def test_a_start_that_takes_too_long_is_ended(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "REASON_S", 0.1)
    monkeypatch.setattr(launch, "START_TIMEOUT_S", 0.3)
    with pytest.raises(EOFError), all_or_none(launcher):
        _start(launcher, _wait_for_a_peer, "w0").recv()
    assert not launcher.processes[0].is_alive()
    assert str(failure_at_start(launcher)) == "the workers did not start within 0.3 s, and were ended."


def test_a_failure_that_is_no_death_keeps_its_own_reason(launcher: Launcher) -> None:
    assert failure_at_start(launcher) is None


def test_a_process_that_never_started_is_no_death(launcher: Launcher) -> None:
    launcher.Process(target=_fail, args=(None,))
    assert cause_of_death(launcher.processes) is None
    end(launcher.processes)
