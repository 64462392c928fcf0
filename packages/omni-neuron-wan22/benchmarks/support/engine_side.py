"""One engine that serves requests over standard input and output: `python engine_side.py SPEC`.

SPEC and every request are JSON. SPEC has `model`, `dtype` and `pipeline_class`, None for the registered one.
The first line out is `{"startup", "report"}`, the report of the one rank; then each line in, with `request`
and `latents` (a file or None), gives one line of seconds out.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TIMEOUT_S = 600
BORN = time.perf_counter()


def main() -> None:
    from omni_neuron.wan22.generation.streams import stdout_for_result

    spec = json.loads(sys.argv[1])
    with stdout_for_result() as answer:
        omni = start(spec)
        try:
            startup_s = time.perf_counter() - BORN
            report = omni.engine.collective_rpc("rank_reports", timeout=60)
            while isinstance(report, list):  # of stages, of workers, of ranks: one each
                (report,) = report
            answer(json.dumps({"startup": startup_s, "report": report}))
            for line in sys.stdin:
                answer(json.dumps(serve(omni, **json.loads(line))))
        finally:
            omni.close()


def start(spec: dict[str, Any]) -> Any:
    """An `Omni` with one worker process, on our platform."""
    from omni_neuron.platform.processes.fork_server import start_fork_server
    from omni_neuron.platform.processes.permanent import permanent_imports
    from omni_neuron.platform.stage_config import StageConfig, apply_overrides, write_deploy_file

    start_fork_server()
    with permanent_imports():
        from vllm_omni.entrypoints.omni import Omni

    model = Path(spec["model"])
    stage, _ = apply_overrides(
        StageConfig(),
        {
            "dtype": spec["dtype"],
            "distributed_executor_backend": "mp",
            "enforce_eager": True,
            "worker_extension_cls": "stage_clock.StageClock",
            "custom_pipeline_args.pipeline_class": spec["pipeline_class"],
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        deploy = write_deploy_file(stage, model, Path(folder) / "deploy.yaml")
        return Omni(
            model=str(model),
            deploy_config=str(deploy),
            init_timeout=TIMEOUT_S,
            stage_init_timeout=TIMEOUT_S,
        )


def serve(omni: Any, request: dict[str, Any], latents: str | None) -> dict[str, Any]:
    """Seconds of one request as its caller sees it, and by stage as the worker sees them."""
    from vllm_omni.inputs.data import OmniDiffusionSamplingParams

    sampling = {name: value for name, value in request.items() if "prompt" not in name}
    prompt = {name: value for name, value in request.items() if "prompt" in name}
    parameters = OmniDiffusionSamplingParams(**sampling, output_type="np")
    begin = time.perf_counter()
    (output,) = omni.generate(prompt, parameters, py_generator=True, use_tqdm=False)
    seconds = time.perf_counter() - begin
    (times,) = omni.engine.collective_rpc("take_times", args=(latents,), timeout=TIMEOUT_S)
    times = times[0] if isinstance(times, list) else times
    return {**times, "request": seconds, "video": list(output.images[0].shape)}


if __name__ == "__main__":
    main()
