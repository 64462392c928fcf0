"""Threads that work for one call: the first failure stops all, and none outlives the call unnoticed."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

POLL_S = 0.1
JOIN_S = 10.0

T = TypeVar("T")


class StageStopped(Exception):  # noqa: N818 (no error: the way to end)
    """Raised inside a stage when another one failed or the call ended."""


class Stages:
    """The threads of one call, as its caller's thread supervises them."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._failures: queue.SimpleQueue[BaseException] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._moves = 0
        self._stopped = False

    def start(self, name: str, stage: Callable[[], None]) -> None:
        """Run a stage in a thread of its own."""

        def run() -> None:
            try:
                stage()
            except StageStopped:
                pass
            except BaseException as error:
                self._failures.put(error)
            finally:
                self.moved()

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def moved(self) -> None:
        """Tell whoever waits that something happened."""
        with self._changed:
            self._moves += 1
            self._changed.notify_all()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait inside a stage; StageStopped when the others stopped."""
        with self._changed:
            while not condition():
                if self._stopped:
                    raise StageStopped
                self._changed.wait(POLL_S)

    def take(self, items: queue.Queue[T]) -> T:
        """The next item of a queue inside a stage; StageStopped when the others stopped."""
        while True:
            if self._stopped:
                raise StageStopped
            try:
                return items.get(timeout=POLL_S)
            except queue.Empty:
                continue

    def supervise(
        self, what: str, done: Callable[[], bool], step: Callable[[], None], stall_s: float
    ) -> None:
        """Call ``step`` whenever something moved, until ``done``; called by the caller's thread.

        Raises:
            BaseException: the first failure of a stage.
            TimeoutError: nothing moved for ``stall_s`` seconds.
            RuntimeError: every stage ended and the work is not done.
        """
        seen, since = -1, time.monotonic()
        while True:
            with self._changed:
                if self._moves == seen:
                    self._changed.wait(POLL_S)
                moves = self._moves
            # Asked before `done`, so that what the last stage did before it ended is seen.
            alive = any(thread.is_alive() for thread in self._threads)
            if not self._failures.empty():
                raise self._failures.get()
            step()
            if done():
                return
            if not alive:
                raise RuntimeError(f"All threads of {what} ended before the work did: report this as a bug.")
            if moves != seen:
                seen, since = moves, time.monotonic()
            elif time.monotonic() - since > stall_s:
                raise TimeoutError(
                    f"{what} must not stand still for {stall_s:g} s, but it did: "
                    "check the disk and the device."
                )

    def close(self) -> list[str]:
        """Stop and join every thread; the names of those that do not end, stuck in a system call."""
        self._stopped = True
        self.moved()
        deadline = time.monotonic() + JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return [thread.name for thread in self._threads if thread.is_alive()]


@contextmanager
def stages(what: str) -> Iterator[Stages]:
    """Stages that are stopped and joined at the end, however it comes."""
    owned = Stages()
    try:
        yield owned
    except BaseException as error:
        stuck = owned.close()
        if stuck:
            error.add_note(f"Threads of {what} are stuck: {', '.join(stuck)}.")
        raise
    if stuck := owned.close():
        raise TimeoutError(
            f"Threads of {what} must end within {JOIN_S:g} s, but these do not: {', '.join(stuck)}."
        )
