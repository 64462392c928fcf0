import queue
import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from vllm_omni.diffusion.data import AsyncDiffusionOutput, DiffusionOutput
from vllm_omni.diffusion.ipc import pack_diffusion_output_shm, unpack_diffusion_output_shm

from omni_neuron.platform.processes import output_thread
from omni_neuron.platform.processes.output_thread import _output_loop

LARGE = 2_000_000  # bytes, so that it goes through shared memory


def _process(*items: object) -> Any:
    """The part of a worker process that its output thread uses."""
    process = SimpleNamespace(
        gpu_id=0,
        _async_output_queue=queue.Queue(),
        _async_output_done=threading.Condition(),
        _async_output_pending=len(items),
        sent=[],
    )
    process._enqueue_result = process.sent.append
    for item in (*items, None):
        process._async_output_queue.put(item)
    return process


def test_tensors_arrive_through_shared_memory_without_a_stream() -> None:
    video = torch.arange(LARGE, dtype=torch.uint8)
    process = _process((DiffusionOutput(output=video.clone()), "a", None))
    _output_loop(process)
    (message,) = process.sent
    assert isinstance(message.output.output, dict)  # a handle, not the tensor
    unpack_diffusion_output_shm(message.output)
    assert torch.equal(message.output.output, video)
    assert process._async_output_pending == 0


def test_an_output_that_cannot_be_packed_is_an_error_of_its_request_and_the_next_one_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = DiffusionOutput(output=torch.zeros(1))

    def pack(output: DiffusionOutput) -> DiffusionOutput:
        if output is broken:
            raise OSError("no space left")
        return pack_diffusion_output_shm(output)

    monkeypatch.setattr(output_thread, "pack_diffusion_output_shm", pack)
    process = _process((broken, "a", None), (DiffusionOutput(output=torch.ones(1)), "b", None))
    _output_loop(process)
    failed, served = process.sent
    assert "packing" in failed.error
    assert failed.async_output_id == "a"
    assert served.error is None
    assert process._async_output_pending == 0


def test_the_death_of_the_thread_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(message: AsyncDiffusionOutput) -> None:
        raise OSError("queue is closed")

    signals: list[int] = []
    monkeypatch.setattr(output_thread.os, "kill", lambda pid, number: signals.append(number))
    process = _process((DiffusionOutput(output=torch.zeros(1)), "a", None))
    process._enqueue_result = closed
    with pytest.raises(OSError, match="queue is closed"):
        _output_loop(process)
    assert signals == [signal.SIGTERM]
