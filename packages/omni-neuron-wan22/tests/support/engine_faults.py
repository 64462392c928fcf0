"""Engines that get bad requests and lose workers, in a process of their own: `engine_faults.py NAME ...`.

Every function prints one line of JSON on standard output.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

GOOD = {
    "prompt": "a red ball",
    "height": 64,
    "width": 64,
    "num_frames": 5,
    "num_inference_steps": 2,
    "guidance_scale": 3.0,
    "seed": 0,
}
BAD = {
    "height": {"height": 63},
    "num_inference_steps": {"num_inference_steps": 0},
    "prompt": {"prompt": "  "},
    "boundary_ratio": {"boundary_ratio": 1.5},
}
LONG = {**GOOD, "num_inference_steps": 1000}


class BreakOutput:
    """Extends a worker: its output thread will die on the next result."""

    def break_output(self) -> None:
        from vllm_omni.diffusion.worker.diffusion_worker import WorkerProc

        stock = WorkerProc._enqueue_result

        def enqueue(proc: Any, message: Any) -> None:
            if threading.current_thread() is proc._async_output_thread:
                raise OSError("the result queue is gone")
            stock(proc, message)

        WorkerProc._enqueue_result = enqueue


def stage(tp: int) -> Any:
    from omni_neuron.platform.stage_config import StageConfig, apply_overrides

    return apply_overrides(StageConfig(), {"tensor_parallel_size": tp, "dtype": "float32"})[0]


def attempt(engine: Any, request: dict[str, Any]) -> dict[str, Any]:
    """A request's error, or its digests, and how long it took."""
    start = time.perf_counter()
    try:
        outcome = {"digests": engine.generate(request).latents_sha256}
    except Exception as error:
        outcome = {"error": type(error).__name__, "message": str(error)}
    return {**outcome, "seconds": time.perf_counter() - start}


def refusals() -> dict[str, Any]:
    """At one rank and at two: bad requests, then a good one; at two then the death of a worker."""
    from omni_neuron.wan22.checkpoint.tiny import tiny_checkpoint
    from omni_neuron.wan22.generation.engine import running_engine

    results: dict[str, Any] = {}
    for tp in (1, 2):
        with running_engine(tiny_checkpoint(), stage(tp)) as engine:
            refused = {name: attempt(engine, {**GOOD, **change}) for name, change in BAD.items()}
            results[f"tp{tp}"] = {"refused": refused, "good": attempt(engine, GOOD)}
            if tp == 2:
                results["killed"] = _attempt_with_a_death(engine)
                results["next"] = attempt(engine, GOOD)
    return results


def output_thread() -> dict[str, Any]:
    """The thread that hands a worker's results out dies."""
    from omni_neuron.wan22.checkpoint.tiny import tiny_checkpoint
    from omni_neuron.wan22.generation.engine import running_engine

    extension = f"{Path(__file__).stem}.BreakOutput"
    with running_engine(tiny_checkpoint(), stage(2), worker_extension_cls=extension) as engine:
        good = attempt(engine, GOOD)
        engine._omni.engine.collective_rpc("break_output", timeout=30)
        return {"good": good, "broken": attempt(engine, GOOD)}


def start_with(model: str, tp: str) -> dict[str, Any]:
    """An engine that the checkpoint keeps from starting."""
    from omni_neuron.wan22.generation.engine import running_engine

    try:
        with running_engine(Path(model), stage(int(tp))):
            return {"error": None}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


def _attempt_with_a_death(engine: Any) -> dict[str, Any]:
    """A long request; a worker is killed while it runs."""
    import multiprocessing

    (victim,) = [child for child in multiprocessing.active_children() if child.name == "DiffusionWorker-1"]
    died: list[float] = []

    def kill() -> None:
        died.append(time.perf_counter())
        victim.kill()

    threading.Timer(1.0, kill).start()
    outcome = attempt(engine, LONG)
    return {**outcome, "after_s": time.perf_counter() - died[0]}


def main() -> None:
    from omni_neuron.runtime.mode import enter_command_mode
    from omni_neuron.wan22.generation.streams import stdout_for_result

    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # workers import BreakOutput
    name, *words = sys.argv[1:]
    with stdout_for_result() as print_result:
        enter_command_mode()
        print_result(json.dumps(globals()[name](*words)))


if __name__ == "__main__":
    main()
