"""One engine in a process of its own: `python engine_process.py SPEC.json`, with the functions that start it.

SPEC has `model`, `layout` (tp, cp, cfg and, above one, ulysses), `dtype`, `cases`, `out` (a folder) and,
optionally, `mp` to force a worker process for one rank, and `settings`, further keys of a stage file by their
names in the table of keys.
Latents go to `out/latents.safetensors`, frames to `out/frames.safetensors`, the rest to `out/results.json`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from video_cases import Case

TIMEOUT_S = 1500
PACKAGE_ENV = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class EngineResults:
    """What one engine made of its cases."""

    latents: dict[str, torch.Tensor]
    frames: dict[str, torch.Tensor]
    digests: dict[str, list[str]]
    seconds: dict[str, float]
    startup_s: float
    peak_rss_anon_mib: list[float]


def run_engine(
    folder: Path,
    model: Path,
    layout: dict[str, int],
    dtype: str,
    cases: Sequence[Case],
    **more: Any,
) -> EngineResults:
    """Start an engine, serve every case through `Omni.generate`, and stop it."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = {
        "model": str(model),
        "layout": layout,
        "dtype": dtype,
        "cases": [
            {"name": case.name, "request": case.request(), "flow_shift": case.flow_shift} for case in cases
        ],
        "out": str(folder),
        **more,
    }
    (folder / "spec.json").write_text(json.dumps(spec))
    log = folder / "engine.log"
    with log.open("w") as stream:
        status = subprocess.run(
            [sys.executable, __file__, str(folder / "spec.json")],
            env={**os.environ, **PACKAGE_ENV, "PYTHONPATH": str(Path(__file__).parent)},
            stdout=stream,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        ).returncode
    if status != 0:
        raise RuntimeError(f"the engine ended with status {status}:\n{log.read_text()[-6000:]}")
    results = json.loads((folder / "results.json").read_text())
    tensors = [load_file(folder / f"{name}.safetensors") for name in ("latents", "frames")]
    return EngineResults(*tensors, **results)


def _serve(spec: dict[str, Any]) -> None:
    from omni_neuron.runtime.mode import enter_command_mode

    enter_command_mode()
    from omni_neuron.platform.stage_config import StageConfig, apply_overrides
    from omni_neuron.wan22.generation.engine import running_engine

    degrees = spec["layout"]
    stage, _ = apply_overrides(
        StageConfig(),
        {
            "tensor_parallel_size": degrees["tp"],
            "ring_degree": degrees["cp"] // degrees.get("ulysses", 1),
            "ulysses_degree": degrees.get("ulysses"),
            "cfg_parallel_size": degrees["cfg"],
            "dtype": spec["dtype"],
            "distributed_executor_backend": "mp" if spec.get("mp") else None,
            **spec.get("settings", {}),
        },
    )
    out = Path(spec["out"])
    latents, frames, digests, seconds = {}, {}, {}, {}
    with running_engine(Path(spec["model"]), stage) as engine:
        for case in spec["cases"]:
            start = time.perf_counter()
            generated = engine.generate(case["request"], flow_shift=case["flow_shift"])
            seconds[case["name"]] = time.perf_counter() - start
            latents[case["name"]] = generated.latents
            frames[case["name"]] = torch.from_numpy(generated.frames).contiguous()
            digests[case["name"]] = generated.latents_sha256
        results = {
            "digests": digests,
            "seconds": seconds,
            "startup_s": engine.startup_s,
            "peak_rss_anon_mib": generated.peak_rss_anon_mib,
        }
    save_file(latents, out / "latents.safetensors")
    save_file(frames, out / "frames.safetensors")
    (out / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    _serve(json.loads(Path(sys.argv[1]).read_text()))
