"""The start of all workers, watched: when one of them dies, the others do not wait for it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

POLL_S = 0.2
START_TIMEOUT_S = 3600.0  # on a device the first start of a model may compile for most of it
# Peers of a failed worker mostly fail by themselves, with a reason that is worth waiting for.
REASON_S = 3.0
TERMINATE_TIMEOUT_S = 3.0


class Launcher:
    """What the executor uses in place of the module `multiprocessing`.

    Attributes:
        processes: all that it made.
        died: those of them that ended by themselves while the others started.
        late: whether the start took longer than START_TIMEOUT_S.
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self.processes: list[BaseProcess] = []
        self.died: list[BaseProcess] = []
        self.late = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def Process(self, **options: Any) -> BaseProcess:  # noqa: N802 (the name of multiprocessing)
        """A process of the context."""
        process: BaseProcess = self._context.Process(**options)
        self.processes.append(process)
        return process


@contextmanager
def all_or_none(launcher: Launcher) -> Iterator[None]:
    """End every process when the body fails, and already while it waits when one dies or time runs out.

    The stock start-up waits without a limit for its workers, one after the other; a worker that lost a peer
    would stay in the rendezvous, and the start-up with it.
    """
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(launcher, over), name="omni-neuron-launch", daemon=True)
    watch.start()
    try:
        yield
    except BaseException:
        over.set()
        watch.join(TERMINATE_TIMEOUT_S)
        end(launcher.processes)
        raise
    finally:
        over.set()


def _watch(launcher: Launcher, over: threading.Event) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not over.wait(POLL_S):
        # Sentinels only: reading an exit code here would take it from the thread that waits for it.
        launcher.died = [process for process in launcher.processes if _has_ended(process)]
        launcher.late = time.monotonic() > deadline
        if launcher.died or launcher.late:
            _end_peers(launcher, over)
            return


def _end_peers(launcher: Launcher, over: threading.Event) -> None:
    """Terminate, then kill: a rendezvous in native code does not hear the first signal."""
    for step in ("terminate", "kill"):
        if over.wait(REASON_S):
            return
        for process in launcher.processes:
            if process.pid is not None and not _has_ended(process):
                getattr(process, step)()


def _has_ended(process: BaseProcess) -> bool:
    return process.pid is not None and bool(wait([process.sentinel], timeout=0))


def end(processes: list[BaseProcess]) -> None:
    """Terminate, then kill, and reap; all of them together get one limit for each of the two."""
    for step in ("terminate", "kill"):
        alive = [process for process in processes if process.is_alive()]
        for process in alive:
            getattr(process, step)()
        deadline = time.monotonic() + TERMINATE_TIMEOUT_S
        for process in alive:
            process.join(max(0.0, deadline - time.monotonic()))


def cause_of_death(processes: list[BaseProcess]) -> str | None:
    """Which workers ended by themselves, and how, such as `DiffusionWorker-1 died (SIGKILL)`."""
    deaths = [
        f"{process.name} died ({_ending(process.exitcode)})"
        for process in processes
        if process.pid is not None and process.exitcode is not None
    ]
    return " and ".join(deaths) or None


def failure_at_start(launcher: Launcher) -> RuntimeError | None:
    """What to say of a start that failed without a reason of its own."""
    reason = cause_of_death(launcher.died)
    if reason is not None:
        return RuntimeError(f"{reason} while it started; its last lines are above.")
    if launcher.late:
        return RuntimeError(f"the workers did not start within {START_TIMEOUT_S:g} s, and were ended.")
    return None


def _ending(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
