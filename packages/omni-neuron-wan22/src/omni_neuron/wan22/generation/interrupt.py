"""Ctrl-C ends the command within seconds, whatever the engine is doing."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from omni_neuron.wan22.generation.streams import STDERR

PATIENCE_S = 3.0
REAP_S = 1.0
STATUS = 130
LAST_LINE = b"omni-neuron generate: interrupted\n"


@contextmanager
def prompt_interrupt() -> Iterator[None]:
    """Let an interrupt in the body raise KeyboardInterrupt, and end the process if that takes too long.

    A request that computes in a thread of this process cannot be cancelled, and Python would wait for it.
    """
    previous = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _interrupt(number: int, frame: FrameType | None) -> None:
    guard = threading.Timer(PATIENCE_S, _leave)
    guard.daemon = True
    guard.start()
    raise KeyboardInterrupt


def _leave() -> None:
    children = multiprocessing.active_children()
    for process in children:
        process.kill()
    deadline = time.monotonic() + REAP_S
    for process in children:
        process.join(max(0.0, deadline - time.monotonic()))
    os.write(STDERR, LAST_LINE)
    os._exit(STATUS)
