"""Each in a process of its own, whose fork server and tracker end with it."""

import subprocess
import sys
from pathlib import Path

import pytest

LEAK = """
from multiprocessing import shared_memory
from omni_neuron.platform.processes.fork_server import quieten_resource_tracker
{quieten}
segment = shared_memory.SharedMemory(create=True, size=64)
print(segment.name, flush=True)
import os, sys
print("the last line", file=sys.stderr, flush=True)
os._exit(1)
"""
CONTEXT = """
import os
from omni_neuron.platform.processes import fork_server

fork_server.PRELOAD.clear()
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")

def report(pipe):
    pipe.send((os.environ.get("LATER"), os.environ.get("VLLM_LOGGING_LEVEL"), os.getppid()))

if __name__ == "__main__":
    fork_server.start_fork_server()
    os.environ["LATER"] = "set after the server started"
    {change}
    context = fork_server.worker_context()
    context.set_start_method("spawn", force=True)
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=report, args=(writer,), daemon=True)
    process.start()
    later, level, parent = reader.recv()
    process.join(30)
    print(later, level, parent == os.getpid(), process.exitcode, sep="|")
"""


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("quieten", "silent"), [("quieten_resource_tracker()", True), ("", False)])
def test_the_tracker_removes_what_is_left_behind_without_a_word(quieten: str, silent: bool) -> None:
    finished = _run("-c", LEAK.format(quieten=quieten))
    assert not Path("/dev/shm", finished.stdout.strip()).exists()
    # The second case shows that there is something to silence.
    assert (finished.stderr.splitlines()[-1] == "the last line") == silent


@pytest.mark.parametrize(
    ("change", "level", "spawned"),
    [("", "WARNING", False), ('os.environ["VLLM_LOGGING_LEVEL"] = "DEBUG"', "DEBUG", True)],
)
def test_workers_get_the_environment_of_now(tmp_path: Path, change: str, level: str, spawned: bool) -> None:
    """Forked where nothing changed that is read at import; else spawned, so their parent is this process."""
    script = tmp_path / "script.py"
    script.write_text(CONTEXT.format(change=change))
    finished = _run(str(script))
    assert finished.stdout == f"set after the server started|{level}|{spawned}|0\n", finished.stderr
