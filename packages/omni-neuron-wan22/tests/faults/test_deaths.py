"""Processes and threads that die under the command: an error or an end, soon, and nothing left behind.

`running` waits for the end of every process and looks for shared memory.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import engine_faults
import pytest
from command_process import running

pytestmark = pytest.mark.slow

LONG = ("generate", "a ball", "--steps", "1000", "--tp", "2")
SOON_S = 10.0


@pytest.mark.parametrize("peer", ["runs", "hangs"])
def test_a_killed_worker_is_the_last_sentence(tmp_path: Path, peer: str) -> None:
    with running(*LONG, cwd=tmp_path) as command:
        command.wait_for("denoise 3/1000")
        first, second = command.workers()
        if peer == "hangs":
            first.suspend()
        second.kill()
        start = time.monotonic()
        command.wait_for("start a new engine")
        assert time.monotonic() - start < SOON_S
        finished = command.finish(timeout_s=60)
    assert finished.status == 1
    assert finished.stdout == ""
    assert finished.last_line == (
        "omni-neuron generate: error: DiffusionWorker-1 died (SIGKILL), and the request with it; "
        "start a new engine."
    )
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_is_killed_while_it_starts(tmp_path: Path) -> None:
    with running(*LONG, cwd=tmp_path) as command:
        while True:
            assert command.process.poll() is None
            try:
                victim = command.workers()[1]
                break
            except (ValueError, IndexError):
                time.sleep(0.02)
        victim.kill()
        finished = command.finish(timeout_s=60)
    assert finished.status == 1
    assert finished.stdout == ""
    assert finished.last_line.startswith(
        "omni-neuron generate: error: DiffusionWorker-1 died (SIGKILL) while it"
    )


@pytest.mark.parametrize("when", ["starting the engine", "denoise 3/1000"])
def test_no_worker_survives_the_command(tmp_path: Path, when: str) -> None:
    with running(*LONG, cwd=tmp_path) as command:
        command.wait_for(when)
        command.process.kill()
        command.finish()


def test_a_dead_output_thread_is_an_error(tmp_path: Path) -> None:
    program = [sys.executable, engine_faults.__file__]
    with running("output_thread", cwd=tmp_path, program=program) as process:
        finished = process.finish()
    assert finished.status == 0, finished.stderr[-4000:]
    outcome = json.loads(finished.stdout)
    assert len(outcome["good"]["digests"]) == 2
    assert outcome["broken"]["error"] == "EngineError"
    assert "died" in outcome["broken"]["message"]
    assert outcome["broken"]["seconds"] < SOON_S


@pytest.mark.parametrize(
    ("words", "when"),
    [
        (("--tp", "1"), "denoise 3/1000"),
        (("--tp", "2"), "denoise 3/1000"),
        (("--tp", "1"), "starting the engine"),
        (("--tp", "2"), "starting the engine"),
    ],
)
@pytest.mark.parametrize("group", [True, False], ids=["terminal", "process"])
def test_an_interrupt_ends_the_command(
    tmp_path: Path, words: tuple[str, ...], when: str, group: bool
) -> None:
    """From a terminal it reaches every process of the group, from `kill` the command alone."""
    with running("generate", "a ball", "--steps", "1000", *words, cwd=tmp_path) as command:
        command.wait_for(when)
        time.sleep(1.0)
        start = time.monotonic()
        (os.killpg if group else os.kill)(command.process.pid, signal.SIGINT)
        finished = command.finish(timeout_s=30)
        assert time.monotonic() - start < SOON_S
    assert finished.status == 130
    assert finished.stdout == ""
    assert finished.last_line == "omni-neuron generate: interrupted"
    assert list(tmp_path.iterdir()) == []
