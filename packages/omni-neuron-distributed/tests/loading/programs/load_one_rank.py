"""Load one rank's shard of a checkpoint and say, as JSON, how far this process's memory rose meanwhile.

python load_one_rank.py FOLDER TP DEVICE
"""

import json
import statistics
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import torch
from torch import nn

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.loading.sharded_loader import load_sharded
from omni_neuron.distributed.process_groups import new_parallel_context
from omni_neuron.distributed.tensor_parallel import (
    ColumnParallelLinear,
    FusedColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from omni_neuron.distributed.testing import simulated_rank

SAMPLE_S = 0.01


def build(group, width, hidden, rows, layers):
    options = {"bias": False, "dtype": torch.bfloat16, "device": "meta"}
    model = nn.Module()
    model.table = VocabParallelEmbedding(rows, width, group, dtype=torch.bfloat16, device="meta")
    model.blocks = nn.ModuleList()
    for _ in range(layers):
        block = nn.Module()
        block.to_qkv = FusedColumnParallelLinear(width, (width,) * 3, group, **options)
        block.up = ColumnParallelLinear(width, hidden, group, **options)
        block.down = RowParallelLinear(hidden, width, group, **options)
        model.blocks.append(block)
    return model


def memory():
    """RssAnon and RssFile in bytes."""
    status = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in status)
    return tuple(int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile"))


def main(folder, tp, device):
    torch.set_num_threads(1)
    with simulated_rank(tp - 1, tp):
        group = new_parallel_context(ParallelLayout(tp=tp)).tp
    model = build(group, **json.loads((folder / "geometry.json").read_text()))
    fused = [name for name, _ in model.named_parameters() if "to_qkv" in name]
    key_map = {name: [name.replace("to_qkv", f"to_{part}") for part in "qkv"] for name in fused}
    samples, over = [], threading.Event()

    def sample():
        while not over.wait(SAMPLE_S):
            samples.append((time.monotonic(), *memory()))

    before = memory()
    sampler = threading.Thread(target=sample)
    sampler.start()
    load_sharded(model, folder, key_map=key_map, device=device)
    over.set()
    sampler.join()
    samples.append((time.monotonic(), *memory()))
    times = [sample[0] for sample in samples]
    sizes = [parameter.nbytes for parameter in model.parameters()]
    report = {
        "anon": max(sample[1] for sample in samples) - before[0],
        "file": max(sample[2] for sample in samples) - before[1],
        "interval": statistics.median(b - a for a, b in pairwise(times)),
        "shard": sum(sizes),
        "largest": max(sizes),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
