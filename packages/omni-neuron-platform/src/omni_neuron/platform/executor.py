"""vLLM-Omni's multi-process executor, made to fail early, with a reason, and without leftovers."""

from __future__ import annotations

import multiprocessing as mp
import tempfile
from multiprocessing import shared_memory
from pathlib import Path

from vllm.logger import init_logger
from vllm_omni.diffusion.executor import multiproc_executor
from vllm_omni.diffusion.executor.multiproc_executor import MultiprocDiffusionExecutor

from omni_neuron.platform.config_check import check_config
from omni_neuron.platform.fork_server import worker_context
from omni_neuron.platform.startup import FOLDER_KEY, startup_failure
from omni_neuron.runtime.mode import detect_mode

logger = init_logger(__name__)

TERMINATE_TIMEOUT_S = 5.0
# A peer of a dead worker may wait in a collective that cannot end: a long farewell only delays the error.
FAILED_GRACE_S = 3.0


def install_executor() -> None:
    """Make the engine's `mp` executor this one: it is looked up by name when an engine starts."""
    multiproc_executor.MultiprocDiffusionExecutor = NeuronMultiprocExecutor


class NeuronMultiprocExecutor(MultiprocDiffusionExecutor):
    """One process per rank."""

    def _init_executor(self) -> None:
        check_config(self.od_config)
        if detect_mode().is_cpu:
            multiproc_executor.mp = worker_context()
        self._segments: list[str] = []
        others = set(mp.active_children())
        with tempfile.TemporaryDirectory(prefix="omni-neuron-") as folder:
            self.od_config.additional_config = {
                **(self.od_config.additional_config or {}),
                FOLDER_KEY: folder,
            }
            try:
                super()._init_executor()
            except Exception as error:
                _end([child for child in mp.active_children() if child not in others])
                raise startup_failure(Path(folder)) or error from error
        self._segments = [queue.buffer.shared_memory.name for queue in self._result_mqs]

    def shutdown(self) -> None:
        if self._is_failed:
            multiproc_executor._WORKER_SHUTDOWN_GRACE_S = FAILED_GRACE_S
            multiproc_executor._WORKER_TERMINATE_GRACE_S = FAILED_GRACE_S
        super().shutdown()
        # A worker that was killed could not unlink the result queue that it had created.
        segments, self._segments = self._segments, []
        for name in segments:
            _unlink(name)


def _end(processes: list[mp.process.BaseProcess]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(TERMINATE_TIMEOUT_S)
        if process.is_alive():
            process.kill()
            process.join(TERMINATE_TIMEOUT_S)


def _unlink(name: str) -> None:
    try:
        segment = shared_memory.SharedMemory(name=name)
    except FileNotFoundError:
        return
    logger.warning("Removing shared memory %s, which a dead worker left behind.", name)
    segment.close()
    segment.unlink()
