"""vLLM-Omni's multi-process executor, made to fail early, with a reason, and without leftovers."""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
from concurrent.futures import InvalidStateError
from contextlib import suppress
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

from vllm.logger import init_logger
from vllm_omni.diffusion.executor import multiproc_executor
from vllm_omni.diffusion.executor.multiproc_executor import MultiprocDiffusionExecutor

from omni_neuron.platform.config_check import check_config
from omni_neuron.platform.processes.engine_loop import install_loop_guard
from omni_neuron.platform.processes.fork_server import worker_context
from omni_neuron.platform.processes.launch import Launcher, all_or_none, cause_of_death
from omni_neuron.platform.processes.startup import FOLDER_KEY, startup_failure
from omni_neuron.runtime.mode import detect_mode

logger = init_logger(__name__)

# A peer of a dead worker may wait in a collective that cannot end: a long farewell only delays the error.
FAILED_GRACE_S = 3.0


def install_executor() -> None:
    """Make the engine's `mp` executor this one: it is looked up by name when an engine starts."""
    install_loop_guard()
    multiproc_executor.MultiprocDiffusionExecutor = NeuronMultiprocExecutor


class NeuronMultiprocExecutor(MultiprocDiffusionExecutor):
    """One process per rank."""

    def _init_executor(self) -> None:
        check_config(self.od_config)
        self._shutdown_lock = threading.RLock()
        self._segments: list[str] = []
        launcher = Launcher(worker_context() if detect_mode().is_cpu else multiprocessing)
        multiproc_executor.mp = launcher
        with tempfile.TemporaryDirectory(prefix="omni-neuron-") as folder:
            self.od_config.additional_config = {
                **(self.od_config.additional_config or {}),
                FOLDER_KEY: folder,
            }
            try:
                with all_or_none(launcher):
                    super()._init_executor()
            except Exception as error:
                raise startup_failure(Path(folder)) or _death_at_start(launcher) or error from error
        self._segments = [queue.buffer.shared_memory.name for queue in self._result_mqs]

    def _result_pump(self, result_mq: Any = None) -> None:
        """The stock thread that hands out results; without it every request would wait for ever."""
        try:
            super()._result_pump(result_mq)
        except Exception:
            logger.exception("The thread that reads the workers' results died; ending the workers.")
            self._is_failed = True
            self.shutdown()

    def shutdown(self) -> None:
        """End the workers; a second caller waits until the first has ended them.

        After a failure the requests that wait hear of it first, then the workers end, then those hear that
        asked to. The stock monitor would tell them from its own thread, after the process may have
        said its last word; told earlier, the engine would drop the reason that the requests got.
        """
        with self._shutdown_lock:
            if self._is_failed:
                multiproc_executor._WORKER_SHUTDOWN_GRACE_S = FAILED_GRACE_S
                multiproc_executor._WORKER_TERMINATE_GRACE_S = FAILED_GRACE_S
                self._fail_waiting()
            super().shutdown()
            # A worker that was killed could not unlink the result queue that it had created.
            segments, self._segments = self._segments, []
            for name in segments:
                _unlink(name)
            while self._is_failed and self._failure_callbacks:
                self._failure_callbacks.pop()()

    def _fail_waiting(self) -> None:
        """Give the requests that wait their reason now, before the peers of a dead worker are ended."""
        reason = cause_of_death(self._processes) or "a helper thread of the engine died"
        error = RuntimeError(f"{reason}, and the request with it; start a new engine.")
        with self._futures_lock:
            for waiting in (*self._rpc_futures.values(), *self._output_futures.values()):
                with suppress(InvalidStateError):  # it was cancelled, or answered just now
                    waiting.set_exception(error)


def _death_at_start(launcher: Launcher) -> RuntimeError | None:
    reason = cause_of_death(launcher.died)
    return None if reason is None else RuntimeError(f"{reason} while it started; its last lines are above.")


def _unlink(name: str) -> None:
    try:
        segment = shared_memory.SharedMemory(name=name)
    except FileNotFoundError:
        return
    logger.warning("Removing shared memory %s, which a dead worker left behind.", name)
    segment.close()
    segment.unlink()
