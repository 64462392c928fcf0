"""Peak anonymous memory of this process, which the kernel does not keep."""

from __future__ import annotations

import threading
from pathlib import Path

INTERVAL_S = 0.05
JOIN_TIMEOUT_S = 2.0
KIB_PER_MIB = 1024

_STATUS = Path("/proc/self/status")


def rss_anon_mib() -> float:
    """Anonymous resident memory of this process now, in MiB (`RssAnon` of proc_pid_status(5))."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / KIB_PER_MIB
    raise OSError(f"{_STATUS} has no RssAnon line: it needs Linux 4.5 or later.")


class AnonymousMemoryPeak:
    """Samples `RssAnon` every 50 ms on a thread of its own, and keeps the largest value.

    File-backed pages, such as a mapped checkpoint, do not count.
    """

    def __init__(self) -> None:
        self._peak = self._start = rss_anon_mib()
        self._error: BaseException | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="AnonymousMemoryPeak", daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        try:
            while not self._stopped.wait(INTERVAL_S):
                self._peak = max(self._peak, rss_anon_mib())
        except BaseException as error:
            self._error = error

    def mib(self) -> float:
        """Peak so far, in MiB.

        Raises:
            RuntimeError: sampling failed, so that the value would be too small.
        """
        if self._error is not None:
            raise RuntimeError(f"sampling anonymous memory failed: {self._error}") from self._error
        self._peak = max(self._peak, rss_anon_mib())
        return self._peak

    def rise_mib(self) -> float:
        """How far the peak so far lies above the start, in MiB; RuntimeError as for `mib`."""
        return self.mib() - self._start

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join(JOIN_TIMEOUT_S)
