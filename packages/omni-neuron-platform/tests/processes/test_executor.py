"""The executor's parts that act when something dies; the model package's fault tests see whole deaths."""

import threading
import weakref
from collections import OrderedDict
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from vllm_omni.diffusion import diffusion_engine
from vllm_omni.diffusion.executor import multiproc_executor
from vllm_omni.diffusion.executor.multiproc_executor import MultiprocDiffusionExecutor

from omni_neuron.platform.processes.executor import NeuronMultiprocExecutor, install_executor


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
