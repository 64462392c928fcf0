"""A rank needs its shard, a tenth and a constant: measured in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from omni_neuron.distributed.loading.pipeline import CONSTANT_BYTES, HOST_BYTES

PROGRAM = Path(__file__).parent / "programs" / "load_one_rank.py"
GEOMETRY = {"width": 2048, "hidden": 6144, "rows": 9000, "layers": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """300 MB: bfloat16 layers in files of their own, and a float32 table that loading casts."""
    folder = tmp_path_factory.mktemp("checkpoint")
    width, hidden, rows = (GEOMETRY[name] for name in ("width", "hidden", "rows"))
    shapes = dict.fromkeys(("to_q", "to_k", "to_v"), (width, width))
    shapes |= {"up": (hidden, width), "down": (width, hidden)}
    name = "model-{}-of-3.safetensors"
    weight_map = {}
    for layer in range(GEOMETRY["layers"]):
        keys = {f"blocks.{layer}.{part}.weight": shape for part, shape in shapes.items()}
        tensors = {key: torch.ones(shape, dtype=torch.bfloat16) for key, shape in keys.items()}
        if layer == 1:
            tensors["table.weight"] = torch.ones(rows, width)
        save_file(tensors, folder / name.format(layer))
        weight_map |= dict.fromkeys(tensors, name.format(layer))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (folder / "geometry.json").write_text(json.dumps(GEOMETRY))
    assert 295e6 < sum(file.stat().st_size for file in folder.glob("*.safetensors")) < 305e6
    return folder


def measure(folder, tp, device):
    command = [sys.executable, str(PROGRAM), str(folder), str(tp), device]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout.splitlines()[-1])
    figures = ", ".join(f"{name} {report[name] / 2**20:.1f} MiB" for name in ("shard", "anon", "file"))
    print(f"tp {tp} to {device}: {figures}, a sample every {report['interval'] * 1000:.0f} ms")
    assert report["interval"] <= 0.05
    return report


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_anonymous_memory_is_the_shard_a_tenth_and_a_constant(folder, tp):
    report = measure(folder, tp, "cpu")
    assert 0.95 * report["shard"] < report["anon"] <= 1.1 * report["shard"] + CONSTANT_BYTES


def test_on_the_way_to_a_device_the_host_holds_a_bounded_part(folder):
    report = measure(folder, 1, "meta")
    assert report["shard"] > 2 * HOST_BYTES
    assert report["anon"] <= max(HOST_BYTES, report["largest"]) + CONSTANT_BYTES
