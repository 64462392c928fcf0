"""A checkpoint of random bytes with the tensors of a transformer, and the model that takes a shard of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.tensor_parallel import (
    ColumnParallelLinear,
    FusedColumnParallelLinear,
    RowParallelLinear,
)

WIDTH, HIDDEN = 2048, 8192
LAYER_BYTES = 2 * (4 * WIDTH * WIDTH + 2 * WIDTH * HIDDEN)
NAME = "diffusion_pytorch_model.safetensors"


class Layer(nn.Module):
    def __init__(self, group: ParallelGroup) -> None:
        super().__init__()
        place = {"dtype": torch.bfloat16, "device": "meta"}
        self.to_qkv = FusedColumnParallelLinear(WIDTH, (WIDTH,) * 3, group, **place)
        self.to_out = RowParallelLinear(WIDTH, WIDTH, group, **place)
        self.up = ColumnParallelLinear(WIDTH, HIDDEN, group, **place)
        self.down = RowParallelLinear(HIDDEN, WIDTH, group, **place)
        self.norm = nn.LayerNorm(WIDTH, **place)


class Model(nn.Module):
    """Layers on the meta device."""

    def __init__(self, layers: int, group: ParallelGroup) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Layer(group) for _ in range(layers))

    def key_map(self) -> dict[str, tuple[str, ...]]:
        """The three checkpoint keys of each joint projection."""
        names = [name for name, _ in self.named_parameters() if ".to_qkv." in name]
        return {name: tuple(name.replace("to_qkv", f"to_{part}") for part in "qkv") for name in names}


def layer_tensors(number: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    shapes = {f"to_{part}": (WIDTH, WIDTH) for part in ("q", "k", "v", "out")}
    shapes |= {"up": (HIDDEN, WIDTH), "down": (WIDTH, HIDDEN)}
    named = {f"{name}.weight": shape for name, shape in shapes.items()}
    named |= {f"{name}.bias": shape[:1] for name, shape in shapes.items()}
    named |= {"norm.weight": (WIDTH,), "norm.bias": (WIDTH,)}
    return {
        f"blocks.{number}.{name}": torch.randint(
            -(2**15), 2**15, shape, dtype=torch.int16, generator=generator
        ).view(torch.bfloat16)
        for name, shape in named.items()
    }


def write_checkpoint(folder: Path, layers: int, files: int) -> list[Path]:
    """The files of the checkpoint, written unless the folder holds it already; the index comes last."""
    index = folder / f"{NAME}.index.json"
    names = [
        NAME.replace(".safetensors", f"-{i:05d}-of-{files:05d}.safetensors") for i in range(1, files + 1)
    ]
    wanted = {"layers": layers, "files": files, "width": WIDTH, "hidden": HIDDEN}
    if index.is_file() and json.loads(index.read_text())["metadata"] == wanted:
        return [folder / name for name in names]
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(0)
    weight_map: dict[str, str] = {}
    for number, name in enumerate(names):
        mine = range(number * layers // files, (number + 1) * layers // files)
        tensors = {}
        for layer in mine:
            tensors |= layer_tensors(layer, generator)
        save_file(tensors, folder / name)
        weight_map |= dict.fromkeys(tensors, name)
        with open(folder / name, "rb") as stream:
            os.fsync(stream.fileno())
    index.write_text(json.dumps({"metadata": wanted, "weight_map": weight_map}))
    return [folder / name for name in names]
