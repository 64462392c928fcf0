"""vLLM-Omni's multi-process executor, made to fail early, with a reason, and without leftovers."""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import InvalidStateError
from contextlib import contextmanager, suppress
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

from vllm.logger import init_logger
from vllm_omni.diffusion.executor import multiproc_executor
from vllm_omni.diffusion.executor.multiproc_executor import MultiprocDiffusionExecutor

from omni_neuron.platform.config_check import check_config
from omni_neuron.platform.processes.engine_loop import install_loop_guard
from omni_neuron.platform.processes.fork_server import worker_context
from omni_neuron.platform.processes.launch import Launcher, all_or_none, cause_of_death, end, failure_at_start
from omni_neuron.platform.processes.startup import FOLDER_KEY, startup_failure
from omni_neuron.runtime.mode import detect_mode

logger = init_logger(__name__)

_one_start = threading.Lock()


def install_executor() -> None:
    """Make the engine's `mp` executor this one, for the rest of this process.

    The engine imports the class by name whenever it starts, and a deploy file that names no executor would
    get the stock one.
    """
    install_loop_guard()
    multiproc_executor.MultiprocDiffusionExecutor = NeuronMultiprocExecutor


class NeuronMultiprocExecutor(MultiprocDiffusionExecutor):
    """One process per rank."""

    def _init_executor(self) -> None:
        check_config(self.od_config)
        self._shutdown_lock = threading.RLock()
        self._segments: list[str] = []
        launcher = Launcher(worker_context() if detect_mode().is_cpu else multiprocessing)
        additional = self.od_config.additional_config
        with tempfile.TemporaryDirectory(prefix="omni-neuron-") as folder:
            self.od_config.additional_config = {**(additional or {}), FOLDER_KEY: folder}
            try:
                with _started_by(launcher), all_or_none(launcher):
                    super()._init_executor()
            except Exception as error:
                reason = startup_failure(Path(folder)) or failure_at_start(launcher)
                if reason is None:
                    raise
                raise reason from error
            finally:
                self.od_config.additional_config = additional

    def _init_result_queue(self, result_handle: Any) -> Any:
        """Note the queue's name here, before the thread that may have to remove it exists."""
        queue = super()._init_result_queue(result_handle)
        self._segments.append(queue.buffer.shared_memory.name)
        return queue

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

        A peer of a dead worker may wait in a collective that cannot end, where no message reaches it: the
        stock farewell of twenty seconds would only delay the error.
        """
        with self._shutdown_lock:
            if self._is_failed:
                self._fail_waiting()
                end(self._processes)
            super().shutdown()
            # A worker that was killed could not unlink the result queue that it had created.
            segments, self._segments = self._segments, []
            for name in segments:
                _unlink(name)
            while self._is_failed and self._failure_callbacks:
                _call(self._failure_callbacks.pop())

    def _fail_waiting(self) -> None:
        """Give the requests that wait their reason now, before the peers of a dead worker are ended."""
        reason = cause_of_death(self._processes) or "a helper thread of the engine died"
        error = RuntimeError(f"{reason}, and the request with it; start a new engine.")
        with self._futures_lock:
            for waiting in (*self._rpc_futures.values(), *self._output_futures.values()):
                with suppress(InvalidStateError):  # it was cancelled, or answered just now
                    waiting.set_exception(error)


@contextmanager
def _started_by(launcher: Launcher) -> Iterator[None]:
    """Let vLLM-Omni's executor use `launcher` where it names the module `multiprocessing`; it takes no other.

    One engine at a time: a start, which is limited, may have to wait for another one.
    """
    with _one_start:
        stock = multiproc_executor.mp
        multiproc_executor.mp = launcher
        try:
            yield
        finally:
            multiproc_executor.mp = stock


def _call(callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception:
        logger.exception("Who should hear of a failure failed to listen.")


def _unlink(name: str) -> None:
    try:
        segment = shared_memory.SharedMemory(name=name)
    except FileNotFoundError:
        return
    logger.warning("Removing shared memory %s, which a dead worker left behind.", name)
    segment.close()
    segment.unlink()
