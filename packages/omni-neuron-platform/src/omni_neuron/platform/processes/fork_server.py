"""Worker processes on the CPU, forked from one process that has imported the engine already.

The stock executor starts every worker with an interpreter of its own, and each imports the engine anew: ten
seconds of a core for every rank. In CPU mode a fork server imports it once. It is started before anything
else happens, holds no thread and no device, and its children are as good as new processes. On hardware
workers start as in the stock executor, because a device runtime does not survive a fork.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerContext
from typing import Any

import torch

from omni_neuron.platform import envs

# The worker's own module brings the engine; pipelines come with their package.
PRELOAD = ["omni_neuron.platform.processes.fork_server_preload"]
# What vLLM and the Hub's library read once, when they are imported: the platform and its device, which
# plugins there are, how to log, where models are and whether there is a network.
READ_AT_IMPORT = ("VLLM_NEURON_", "VLLM_PLUGINS", "VLLM_LOGGING_", "VLLM_CONFIGURE_LOGGING", "HF_")
STDERR = 2
FAREWELL_S = 5.0

_environment: dict[str, str] | None = None


def start_fork_server() -> None:
    """Start the server now, so that it imports the engine while this process does something else."""
    global _environment
    if _environment is None:
        quieten_resource_tracker()
        multiprocessing.set_forkserver_preload(PRELOAD)
        forkserver.ensure_running()
        _environment = dict(os.environ)


def quieten_resource_tracker() -> None:
    """Start Python's tracker of shared memory without a voice.

    It outlives this process to remove what a dead worker left behind, and would say so after our last line.
    """
    kept = os.dup(STDERR)
    silence = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(silence, STDERR)
        resource_tracker.ensure_running()
    finally:
        os.dup2(kept, STDERR)
        os.close(silence)
        os.close(kept)


def worker_context() -> Any:
    """What the executor should use in place of the module `multiprocessing`.

    Workers get the environment of now, but what is read while the engine is imported was read by the server.
    Where that differs, workers are spawned afresh.
    """
    start_fork_server()
    changed = _read_at_import(os.environ) != _read_at_import(_environment or {})
    return multiprocessing if changed else _Context()


def _read_at_import(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_IMPORT)}


class _Context(ForkServerContext):
    """A fork-server context that the executor may tell to spawn, and whose processes get our environment."""

    def set_start_method(self, method: str | None, force: bool = False) -> None:
        """Stay with the fork server."""

    def Process(  # type: ignore[override]  # noqa: N802 (the name of multiprocessing)
        self, *, target: Callable[..., object], args: Sequence[Any] = (), **options: Any
    ) -> multiprocessing.process.BaseProcess:
        """A process that runs `target` in this process's environment of now."""
        return ForkServerContext.Process(target=_run, args=(dict(os.environ), target, args), **options)


def _run(environment: dict[str, str], target: Callable[..., object], args: Sequence[Any]) -> None:
    threading.Thread(target=_end_with_parent, name="omni-neuron-parent", daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    threads = envs.omp_num_threads()  # the server's OpenMP has read its own when it was loaded
    if threads is not None:
        torch.set_num_threads(threads)
    target(*args)


def _end_with_parent() -> None:
    """Wait for the end of the process that asked for this one, then end this one too.

    The kernel's signal on a parent's death speaks of the fork server, which lives as long as its children do.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(FAREWELL_S)
    os.kill(os.getpid(), signal.SIGKILL)
