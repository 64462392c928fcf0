"""Loading one rank's shard from a cold disk: ours beside load_file + slice and vLLM-Omni's loader.

    python packages/omni-neuron-distributed/benchmarks/load_checkpoint.py [--folder DIR] [--rounds 3] ...

A synthetic bfloat16 checkpoint in several files with a diffusers index is written once. Each load runs in a
process of its own, forked after the imports, one at a time and in alternating order. Before each the files'
pages are dropped (fsync, then posix_fadvise DONTNEED) and mincore(2) is asked what is left. Printed for
every TP degree: seconds, GB/s of the shard, and how far the process rose above where it stood before loading:
RssAnon (bar: shard + 10 % + constant) and RssFile, sampled every 20 ms. All must load the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import statistics
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from support.contestants import contestants
from support.page_cache_state import drop, resident_share
from support.synthetic import LAYER_BYTES, Model, write_checkpoint

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.loading.pipeline import CONSTANT_BYTES
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.testing import simulated_rank

SAMPLE_S = 0.02
LIMIT_S = 180


@dataclass(frozen=True)
class Run:
    seconds: float
    anon: int
    file: int
    shard: int
    digest: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder", type=Path, help="where the checkpoint is kept; a temporary one unless given"
    )
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--files", type=int, default=6)
    parser.add_argument("--tp", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", action="store_true", help="leave the pages in memory")
    args = parser.parse_args()
    names = contestants()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        layers = max(args.files, round(args.gigabytes * 1e9 / LAYER_BYTES))
        files = write_checkpoint(folder, layers, args.files)
        total = sum(file.stat().st_size for file in files)
        print(
            f"{total / 1e9:.2f} GB in {len(files)} files, {'warm' if args.warm else 'cold'}, "
            f"{args.rounds} rounds; constant {CONSTANT_BYTES / 2**20:.0f} MiB"
        )
        for tp in args.tp:
            compare(list(names), folder, files, layers, tp, args.rounds, args.warm)


def compare(
    names: list[str], folder: Path, files: list[Path], layers: int, tp: int, rounds: int, warm: bool
) -> None:
    runs: dict[str, list[Run]] = {name: [] for name in names}
    left = 0.0
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            if not warm:
                for file in files:
                    drop(file)
                left = max(left, *(resident_share(file) for file in files))
            runs[name].append(measure(name, folder, files, layers, tp))
    digests = {run.digest for found in runs.values() for run in found}
    if len(digests) > 1:
        raise SystemExit(f"tp {tp}: the loaders must load the same bytes, but they differ.")
    shard = runs[names[0]][0].shard
    print(f"\ntp {tp}: shard {shard / 2**20:.0f} MiB, at most {left:.1%} of a file in memory before a load")
    for name, found in runs.items():
        seconds = [run.seconds for run in found]
        middle = statistics.median(seconds)
        anon, mapped = max(run.anon for run in found), max(run.file for run in found)
        print(
            f"  {name:10s} min {min(seconds):6.2f} s  median {middle:6.2f} s  max {max(seconds):6.2f} s  "
            f"{shard / middle / 1e9:5.2f} GB/s  RssAnon +{anon / 2**20:6.0f} MiB "
            f"(shard {(anon - shard) / 2**20:+.0f})  RssFile +{mapped / 2**20:6.0f} MiB"
        )


def measure(name: str, folder: Path, files: list[Path], layers: int, tp: int) -> Run:
    """One load in a forked process, watched from here."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=load, args=(there, name, folder, files, layers, tp), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(LIMIT_S):
            raise SystemExit(f"{name} did not start within {LIMIT_S} s.")
        here.recv()
        before = memory(process.pid)
        here.send("go")
        anon, mapped = before
        deadline = time.monotonic() + LIMIT_S
        while not here.poll(SAMPLE_S):
            now = memory(process.pid)
            anon, mapped = max(anon, now[0]), max(mapped, now[1])
            if time.monotonic() > deadline:
                raise SystemExit(f"{name} did not load within {LIMIT_S} s.")
        here.recv()
        here.send("digest")
        if not here.poll(LIMIT_S):
            raise SystemExit(f"{name} did not answer within {LIMIT_S} s.")
        seconds, shard, digest = here.recv()
        return Run(seconds, anon - before[0], mapped - before[1], shard, digest)
    finally:
        process.kill()
        process.join(LIMIT_S)


def memory(pid: int | None) -> tuple[int, int]:
    """RssAnon and RssFile of a process in bytes."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    anon, mapped = (int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile"))
    return anon, mapped


def load(pipe: Connection, name: str, folder: Path, files: list[Path], layers: int, tp: int) -> None:
    rank = tp - 1
    with simulated_rank(rank, tp):
        group = new_parallel_context(ParallelLayout(tp=tp)).tp
    model = Model(layers, group)
    contestant = contestants()[name]
    pipe.send("ready")
    pipe.recv()
    start = time.perf_counter()
    contestant(model, folder, files, group)
    seconds = time.perf_counter() - start
    pipe.send("loaded")
    pipe.recv()
    parts = [parameter.detach().view(torch.int16) for parameter in model.parameters()]
    sums = [(int(part.sum()), part.flatten()[:: 1 + part.numel() // 1000].tolist()) for part in parts]
    digest = hashlib.sha256(repr(sums).encode()).hexdigest()
    pipe.send((seconds, sum(2 * part.numel() for part in parts), digest))


if __name__ == "__main__":
    main()
