"""A process that does long work without a look around ends all the same when its parent has ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

PERIOD_S = 0.5


@contextmanager
def ending_when_orphaned() -> Iterator[None]:
    """While the body runs in the main thread, end this process soon after its parent, and at no other time.

    By a timer's signal and not by a thread, which no fork survives. An interrupt from the terminal is for the
    parent to answer.
    """
    parent = os.getppid()

    def look(number: int, frame: FrameType | None) -> None:
        if os.getppid() != parent:
            os._exit(1)

    previous = {
        signal.SIGALRM: signal.signal(signal.SIGALRM, look),
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
    }
    signal.setitimer(signal.ITIMER_REAL, PERIOD_S, PERIOD_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in previous.items():
            signal.signal(number, handler)
