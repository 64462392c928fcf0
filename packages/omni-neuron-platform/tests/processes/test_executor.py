"""The executor's parts that act when something dies; the model package's fault tests see whole deaths."""

import multiprocessing
import threading
import time
import weakref
from collections import OrderedDict
from concurrent.futures import Future
from multiprocessing import shared_memory
from types import SimpleNamespace
from typing import Any

import pytest
from vllm_omni.diffusion import diffusion_engine
from vllm_omni.diffusion.executor import multiproc_executor
from vllm_omni.diffusion.executor.multiproc_executor import MultiprocDiffusionExecutor

from omni_neuron.platform.processes import executor as executor_module
from omni_neuron.platform.processes.executor import NeuronMultiprocExecutor, install_executor
from omni_neuron.platform.processes.launch import Launcher
from omni_neuron.platform.processes.startup import FOLDER_KEY


def _executor(**processes: int | None) -> Any:
    """An executor as it stands after its start, with processes by name and exit code."""
    executor = object.__new__(NeuronMultiprocExecutor)
    executor._processes = [
        SimpleNamespace(name=name, pid=1, exitcode=code, is_alive=lambda: False)
        for name, code in processes.items()
    ]
    executor._is_failed = executor._closed = False
    executor._shutdown_lock = threading.RLock()
    executor._futures_lock = threading.RLock()
    executor._pump_stop = threading.Event()
    executor._finalizer = weakref.finalize(executor, lambda: None)
    executor._shutdown_cleaner = None
    executor._segments = []
    executor._failure_callbacks = []
    executor._rpc_futures = {"rpc": Future()}
    executor._output_futures = {"output": Future()}
    executor._completed_outputs, executor._batch_split_map = {}, {}
    executor._dropped_output_ids = OrderedDict()
    return executor


def test_the_engine_finds_it_by_name() -> None:
    install_executor()
    assert multiproc_executor.MultiprocDiffusionExecutor is NeuronMultiprocExecutor
    assert diffusion_engine.DiffusionEngine._busy_loop.guarded


def test_who_waits_hears_which_worker_died() -> None:
    executor = _executor(w0=None, w1=-9)
    waiting = [executor._rpc_futures["rpc"], executor._output_futures["output"]]
    executor._is_failed = True
    executor.shutdown()
    for future in waiting:
        assert str(future.exception(timeout=0)) == (
            "w1 died (SIGKILL), and the request with it; start a new engine."
        )


def test_who_waits_hears_before_the_workers_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = _executor(w1=-9)
    waiting = executor._rpc_futures["rpc"]
    order: list[str] = []
    waiting.add_done_callback(lambda future: order.append("request"))
    executor._failure_callbacks = [lambda: order.append("engine")]
    monkeypatch.setattr(MultiprocDiffusionExecutor, "shutdown", lambda self: order.append("workers"))
    executor._is_failed = True
    executor.shutdown()
    executor.shutdown()
    assert order == ["request", "workers", "engine", "workers"]


def test_the_death_of_the_result_thread_fails_what_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(self: Any, queue: Any = None) -> None:
        raise KeyError("kind")

    monkeypatch.setattr(MultiprocDiffusionExecutor, "_result_pump", die)
    executor = _executor(w0=None)
    waiting = executor._rpc_futures["rpc"]
    callbacks: list[str] = []
    executor._failure_callbacks = [lambda: callbacks.append("called")]
    executor._result_pump()
    assert "a helper thread of the engine died" in str(waiting.exception(timeout=0))
    assert executor.is_dead
    assert callbacks == ["called"]


def test_a_second_shutdown_waits_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = _executor()
    started, go = threading.Event(), threading.Event()
    order: list[str] = []

    def slow(self: Any) -> None:
        started.set()
        assert go.wait(10)
        order.append(threading.current_thread().name)

    monkeypatch.setattr(MultiprocDiffusionExecutor, "shutdown", slow)
    threads = [threading.Thread(target=executor.shutdown, name=name) for name in ("first", "second")]
    threads[0].start()
    assert started.wait(10)
    threads[1].start()
    threads[1].join(0.2)
    assert threads[1].is_alive()
    go.set()
    for thread in threads:
        thread.join(10)
    assert order == ["first", "second"]


def test_the_end_of_a_failed_engine_is_quick_and_changes_nothing_for_the_next_one() -> None:
    stock = dict(vars(multiproc_executor))
    worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(300,), daemon=True)
    worker.start()
    executor = _executor()
    executor._processes = [worker]
    executor._is_failed = True
    start = time.monotonic()
    executor.shutdown()
    assert not worker.is_alive()
    assert time.monotonic() - start < 5
    assert dict(vars(multiproc_executor)) == stock


def test_a_callback_that_fails_does_not_keep_the_next_one_from_hearing() -> None:
    executor = _executor()
    heard: list[str] = []
    executor._failure_callbacks = [lambda: heard.append("second"), lambda: heard.index("absent")]
    executor._is_failed = True
    executor.shutdown()
    assert heard == ["second"]


def test_a_queue_whose_worker_was_killed_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    segment = shared_memory.SharedMemory(create=True, size=64)
    queue = SimpleNamespace(buffer=SimpleNamespace(shared_memory=segment))
    monkeypatch.setattr(MultiprocDiffusionExecutor, "_init_result_queue", lambda self, handle: queue)
    executor = _executor()
    assert executor._init_result_queue("handle") is queue
    executor.shutdown()
    segment.close()
    with pytest.raises(FileNotFoundError):
        shared_memory.SharedMemory(name=segment.name)


def test_a_start_gives_back_what_it_borrowed_also_when_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    stock, seen = multiproc_executor.mp, []
    error = OSError("no queue")

    def start(self: Any) -> None:
        seen.append((type(multiproc_executor.mp), self.od_config.additional_config))
        raise error

    monkeypatch.setattr(MultiprocDiffusionExecutor, "_init_executor", start)
    monkeypatch.setattr(executor_module, "check_config", lambda config: None)
    monkeypatch.setattr(executor_module, "worker_context", lambda: multiprocessing)
    config = SimpleNamespace(additional_config={"other": 1})
    with pytest.raises(OSError, match="no queue") as raised:
        NeuronMultiprocExecutor(config)
    ((context, additional),) = seen
    assert context is Launcher
    assert additional["other"] == 1
    assert FOLDER_KEY in additional
    assert multiproc_executor.mp is stock
    assert config.additional_config == {"other": 1}
    assert raised.value is error
    assert error.__cause__ is None  # no error is its own cause
