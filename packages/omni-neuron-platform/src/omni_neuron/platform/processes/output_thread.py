"""The worker's background output thread, without device streams.

vLLM-Omni packs a finished request's tensors into shared memory on a thread of its own, with a side stream of
the accelerator. Neither the CPU nor an eager Neuron device has such streams; without one the stock thread
dies on its first line, silently, and the caller waits for an answer that cannot come. This loop packs without
a stream, and a failure that it cannot report as a request's error ends the worker, which the executor
notices.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from vllm.logger import init_logger
from vllm_omni.diffusion.data import AsyncDiffusionOutput, AsyncOutputKind
from vllm_omni.diffusion.ipc import pack_diffusion_output_shm
from vllm_omni.diffusion.worker.diffusion_worker import WorkerProc

logger = init_logger(__name__)


def install_stream_free_output() -> None:
    """Give this worker process the stream-free loop. Called before the process starts its output thread."""
    WorkerProc._async_output_loop = _output_loop


def _output_loop(proc: Any) -> None:
    try:
        while (item := proc._async_output_queue.get()) is not None:
            output, async_output_id, _ = item
            _deliver(proc, output, async_output_id)
    except BaseException:
        logger.exception("The output thread of worker %s died; ending the worker.", proc.gpu_id)
        os.kill(os.getpid(), signal.SIGTERM)
        raise


def _deliver(proc: Any, output: Any, async_output_id: str) -> None:
    try:
        message = AsyncDiffusionOutput(
            kind=AsyncOutputKind.OUTPUT_READY,
            async_output_id=async_output_id,
            output=pack_diffusion_output_shm(output),
        )
    except Exception as error:
        logger.exception("Packing the output %s failed.", async_output_id)
        message = AsyncDiffusionOutput(
            kind=AsyncOutputKind.OUTPUT_READY,
            async_output_id=async_output_id,
            error=f"packing the output into shared memory failed: {error}",
        )
    try:
        proc._enqueue_result(message)
    finally:
        with proc._async_output_done:
            proc._async_output_pending = max(0, proc._async_output_pending - 1)
            proc._async_output_done.notify_all()
