"""A whole request: our pipeline beside vLLM-Omni's own, each in an engine of its own, alternating.

    python packages/omni-neuron-wan22/benchmarks/engine_request.py [--dtype float32] [--steps 4] ...

Both engines run on our platform in CPU mode, one rank, with one worker process, on one random checkpoint
whose forward takes about one second on one core; one of them works while the other one waits. All of it is
done twice, with either side starting first. Printed for every dtype: start-up in both orders, the seconds
of a request and of its stages, the ratio ours / stock pair by pair, and how far the final latents of one
seed are apart. `cpu` is the processor time of the worker inside the pipeline, which other work on the
machine disturbs less than the time on the wall; `others` is how many cores were busy with something else.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import psutil
from safetensors.torch import load_file

from omni_neuron.wan22.checkpoint.tiny import TinyGeometry, tiny_checkpoint

PIPELINES = {"ours": None, "stock": "vllm_omni.diffusion.models.wan2_2.pipeline_wan2_2.Wan22Pipeline"}
SUPPORT = Path(__file__).parent / "support"
GEOMETRY = {"num_attention_heads": 6, "attention_head_dim": 128, "num_layers": 2, "ffn_dim": 3072}
COLUMNS = ("request", "text", "denoise", "decode", "rest", "cpu", "forward")
ANSWER_TIMEOUT_S = 600
END_TIMEOUT_S = 60
BAR = 1.05


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--dtype", nargs="+", choices=["float32", "bfloat16"], default=["float32", "bfloat16"]
    )
    parser.add_argument("--rounds", type=int, default=3, help="timed requests of each side and order")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    parser.add_argument("--height", type=int, default=448)
    parser.add_argument("--width", type=int, default=448)
    parser.add_argument("--frames", type=int, default=5)
    parser.add_argument("--quiet-load", type=float, default=1.5, help="load average to wait for")
    parser.add_argument("--patience", type=float, default=0, help="seconds to wait for it, at the most")
    parser.add_argument("--log", type=Path, help="where the engines' output goes; thrown away unless given")
    for field in fields(TinyGeometry):
        if isinstance(field.default, int) and not isinstance(field.default, bool):
            default = GEOMETRY.get(field.name, field.default)
            parser.add_argument(f"--{field.name.replace('_', '-')}", type=int, default=default)
    args = parser.parse_args()
    sizes = {field.name: value for field in fields(TinyGeometry) if (value := vars(args).get(field.name))}
    model = tiny_checkpoint(TinyGeometry(**sizes))
    tokens = ((args.frames - 1) // 4 + 1) * (args.height // 16) * (args.width // 16)
    print(
        f"{args.num_layers} layers, {args.num_attention_heads}x{args.attention_head_dim} heads, "
        f"ffn {args.ffn_dim}, {tokens} tokens; "
        f"{args.frames} frames of {args.width}x{args.height}, {args.steps} steps, guided; "
        f"one rank, mp executor, {args.threads} threads, {args.rounds} rounds"
    )
    request = {
        "prompt": "a red ball rolling over grass",
        "negative_prompt": "blurry, grey",
        "height": args.height,
        "width": args.width,
        "num_frames": args.frames,
        "num_inference_steps": args.steps,
        "guidance_scale": 4.0,
        "seed": 0,
    }
    for dtype in args.dtype:
        load = wait_for_quiet(args.quiet_load, args.patience)
        print(f"{dtype}: load average {load:.2f}" + (" (BUSY)" if load > args.quiet_load else ""), flush=True)
        compare(model, dtype, request, args.rounds, args.threads, args.log)


def compare(
    model: Path, dtype: str, request: dict[str, Any], rounds: int, threads: int, log: Path | None
) -> None:
    """Run both sides and print what they took."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in PIPELINES}
    warm: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, open(log or os.devnull, "a") as stream:
        latents = {name: f"{folder}/{name}.safetensors" for name in PIPELINES}
        # The second to start finds warm what both read, so each side is once the first.
        for order in (list(PIPELINES), list(PIPELINES)[::-1]):
            with started(order, model, dtype, threads, stream) as sides:
                for name, side in sides.items():
                    print(
                        f"  start-up, {order[0]} first: {name} {side.startup_s:.1f} s, "
                        f"processor time {side.startup_cpu_s:.1f} s"
                    )
                    if side.report["load_rise_mib"] is not None:
                        print(
                            f"  loading: {side.report['weights_mib']:.0f} MiB of weights raised anonymous "
                            f"memory by {side.report['load_rise_mib']:.0f} MiB"
                        )
                warm += [side.serve(request, latents[name]) for name, side in sides.items()]
                for turn in range(rounds):
                    for name in order[:: -1 if turn % 2 else 1]:
                        results[name].append(sides[name].serve(request))
        ours, stock = (load_file(latents[name])["latents"].double() for name in ("ours", "stock"))
    for name in ("video", "threads"):
        if len({str(result[name]) for side in (*results.values(), warm) for result in side}) != 1:
            raise RuntimeError(f"the sides did different work: {name} differs in {results}")
    print(f"  relative L2 between the final latents {float((ours - stock).norm() / stock.norm()):.1e}")
    report(results)


@contextmanager
def started(
    order: list[str], model: Path, dtype: str, threads: int, log: Any
) -> Iterator[dict[str, EngineSide]]:
    """Both engines, started one after the other so that neither slows the other's start."""
    sides: dict[str, EngineSide] = {}
    try:
        for name in order:
            spec = {"model": str(model), "dtype": dtype, "pipeline_class": PIPELINES[name]}
            sides[name] = EngineSide(spec, threads, log)
        yield sides
    finally:
        for side in sides.values():
            side.close()


def report(results: dict[str, list[dict[str, Any]]]) -> None:
    """Print the table and the ratios."""
    print(f"  {'seconds':18s}" + "".join(f"{name:>9s}" for name in (*COLUMNS, "others")))
    for name, rows in results.items():
        for row in rows:
            row["rest"] = row["request"] - sum(row[stage] for stage in ("text", "denoise", "decode"))
        for label, choose in (("min", min), ("median", statistics.median), ("max", max)):
            values = [choose([row[column] for row in rows]) for column in (*COLUMNS, "others")]
            print(f"  {name:11s}{label:7s}" + "".join(f"{value:9.3f}" for value in values))
    for clock in ("request", "cpu"):
        pairs = [
            ours[clock] / stock[clock] for ours, stock in zip(results["ours"], results["stock"], strict=True)
        ]
        each = " ".join(f"{pair:.3f}" for pair in pairs)
        print(
            f"  ours / stock, {clock}: {each}  median {statistics.median(pairs):.3f} (bar {BAR})", flush=True
        )


class EngineSide:
    """One engine in a process of its own."""

    def __init__(self, spec: dict[str, Any], threads: int, log: Any) -> None:
        environment = {
            "VLLM_NEURON_CPU_MODE": "1",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": str(threads),
            "PYTHONPATH": str(SUPPORT),
        }
        self._process = subprocess.Popen(
            [sys.executable, str(SUPPORT / "engine_side.py"), json.dumps(spec)],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        started = self._answer()
        self.startup_s: float = started["startup"]
        self.report: dict[str, Any] = started["report"]
        self.startup_cpu_s = processor_time(psutil.Process(self._process.pid))

    def serve(self, request: dict[str, Any], latents: str | None = None) -> dict[str, Any]:
        """Seconds of one request."""
        psutil.cpu_percent()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"request": request, "latents": latents}) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        busy = psutil.cpu_percent() / 100 * (psutil.cpu_count() or 1)
        return {**answer, "others": max(busy - answer["cpu"] / answer["request"], 0.0)}

    def close(self) -> None:
        """End the engine."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_TIMEOUT_S)
        if not ready:
            raise RuntimeError(
                f"an engine gave no answer for {ANSWER_TIMEOUT_S} s; --log FILE keeps its output"
            )
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"an engine ended with status {self._process.wait()}; --log FILE keeps its output"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer


def processor_time(process: psutil.Process) -> float:
    """Seconds of this process and of all that came from it."""
    return sum(sum(each.cpu_times()[:4]) for each in (process, *process.children(recursive=True)))


def wait_for_quiet(limit: float, patience_s: float) -> float:
    """The load average of the last minute, when it is below `limit` or patience is over."""
    end = time.monotonic() + patience_s
    while (load := os.getloadavg()[0]) > limit and time.monotonic() < end:
        time.sleep(5)
    return load


if __name__ == "__main__":
    main()
