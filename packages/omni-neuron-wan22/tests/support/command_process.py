"""Runs the command in a session of its own, and looks for what it leaves behind."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

TIMEOUT_S = 240
SETTLE_S = 10.0  # for what ends by itself when its parent has ended, such as the fork server
SHARED_MEMORY = Path("/dev/shm")
ENV = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "VLLM_NO_USAGE_STATS": "1"}
COMMAND = [sys.executable, "-m", "omni_neuron.cli"]


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def last_line(self) -> str:
        return self.stderr.rstrip("\n").rpartition("\n")[2]


class Running:
    """A command that runs; its output is collected while it does."""

    def __init__(self, words: tuple[str, ...], cwd: Path, terminal: bool, program: list[str]) -> None:
        self._start = time.monotonic()
        self._out: list[bytes] = []
        self._err: list[bytes] = []
        err_read, err_write = pty.openpty() if terminal else os.pipe()
        self.process = subprocess.Popen(
            [*program, *words],
            cwd=cwd,
            env={**os.environ, **ENV},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=err_write,
            start_new_session=True,
        )
        os.close(err_write)
        assert self.process.stdout is not None
        self._readers = [
            threading.Thread(target=_drain, args=(source, sink), daemon=True)
            for source, sink in ((self.process.stdout.fileno(), self._out), (err_read, self._err))
        ]
        for reader in self._readers:
            reader.start()

    @property
    def stderr(self) -> str:
        return b"".join(self._err).decode(errors="replace")

    def wait_for(self, words: str, timeout_s: float = TIMEOUT_S) -> None:
        """Until `words` stand on standard error."""
        until(lambda: words in self.stderr or self.process.poll() is not None, timeout_s, words)
        assert words in self.stderr, self.stderr

    def workers(self) -> list[psutil.Process]:
        """What the fork server has forked, in the order of ranks."""
        (server,) = [process for process in self.family() if _is_fork_server(process, self.process.pid)]
        return sorted(server.children(), key=lambda worker: worker.pid)

    def family(self) -> list[psutil.Process]:
        """Everything that lives in the session."""
        return _session(self.process.pid)

    def finish(self, timeout_s: float = TIMEOUT_S) -> Finished:
        """Wait for the end of the command, then of all output."""
        status = self.process.wait(timeout_s)
        seconds = time.monotonic() - self._start
        for reader in self._readers:
            reader.join(SETTLE_S)
        return Finished(status, b"".join(self._out).decode(), self.stderr, seconds)


@contextmanager
def running(
    *words: str, cwd: Path, terminal: bool = False, program: list[str] | None = None
) -> Iterator[Running]:
    """A command; afterwards no process and no shared memory of it may be left."""
    before = set(SHARED_MEMORY.iterdir())
    command = Running(words, cwd, terminal, program or COMMAND)
    try:
        yield command
        until(lambda: not command.family(), SETTLE_S, "the end of every process", command.family)
        new = set(SHARED_MEMORY.iterdir()) - before
        until(lambda: not _unmapped(new), SETTLE_S, "the removal of shared memory", lambda: _unmapped(new))
    finally:
        for process in command.family():
            if not _is_helper(process, "resource_tracker"):  # it has to clean up
                process.kill()


def run(*words: str, cwd: Path, terminal: bool = False) -> Finished:
    """A command from its start to its end."""
    with running(*words, cwd=cwd, terminal=terminal) as command:
        return command.finish()


def until(
    holds: Callable[[], bool], timeout_s: float, what: str, state: Callable[[], object] = lambda: ""
) -> None:
    """Poll until a condition holds."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"{timeout_s:.0f} s without {what}: {state()}"
        time.sleep(0.05)


def _drain(source: int, sink: list[bytes]) -> None:
    try:
        while chunk := os.read(source, 65536):
            sink.append(chunk)
    except OSError:  # a terminal without a writer
        pass


def _session(leader: int) -> list[psutil.Process]:
    members = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
        except (ProcessLookupError, psutil.Error):
            continue
    return members


def _is_helper(process: psutil.Process, name: str) -> bool:
    try:
        return f"multiprocessing.{name}" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def _is_fork_server(process: psutil.Process, parent: int) -> bool:
    return _is_helper(process, "forkserver") and process.ppid() == parent


def _unmapped(segments: set[Path]) -> set[Path]:
    """Those of the segments that exist and belong to no living process: others run on this machine too.

    By inode, because a semaphore is mapped under the temporary name by which it was made.
    """
    inodes = {}
    for segment in segments:
        with suppress(FileNotFoundError):
            inodes[str(segment.stat().st_ino)] = segment
    for process in psutil.process_iter() if inodes else ():
        with suppress(OSError):
            for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines():
                if SHARED_MEMORY.name in line:
                    inodes.pop(line.split()[4], None)
    return set(inodes.values())
