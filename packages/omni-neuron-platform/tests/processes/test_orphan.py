import signal
import subprocess
import sys
import time

from omni_neuron.platform.processes import orphan

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
print(child.pid, child.stdout.readline(), flush=True)
"""
CHILD = """
import time
from omni_neuron.platform.processes.orphan import ending_when_orphaned

with ending_when_orphaned():
    print("busy", flush=True)
    time.sleep(60)
"""


def test_a_child_that_is_busy_ends_soon_after_its_parent() -> None:
    command = [sys.executable, "-c", PARENT, CHILD]
    parent = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    child, word = parent.stdout.split()
    assert word == "busy"
    deadline = time.monotonic() + 10
    while _runs(int(child)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    """Whether a process lives; one that ended and that nobody has reaped does not."""
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_signals_are_given_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGINT)]
    with orphan.ending_when_orphaned():
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        assert signal.getitimer(signal.ITIMER_REAL)[1] == orphan.PERIOD_S
    assert [signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGINT)] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
