"""Tiny checkpoints with something wrong in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from omni_neuron.wan22.checkpoint.tiny import tiny_checkpoint

TRANSFORMER = "transformer/diffusion_pytorch_model.safetensors"
VAE = "vae/diffusion_pytorch_model.safetensors"
# What `with_faulty_tensors` leaves out, adds and bends, of two components.
NAMES = {TRANSFORMER: ("proj_out.bias", "surplus"), VAE: ("post_quant_conv.bias",)}


def with_faulty_tensors(folder: Path) -> Path:
    """A tensor is missing and one too many in the first expert, and one of the VAE is mis-shaped."""
    shutil.copytree(tiny_checkpoint(), folder)
    transformer = load_file(folder / TRANSFORMER)
    del transformer["proj_out.bias"]
    save_file({**transformer, "surplus": torch.zeros(3)}, folder / TRANSFORMER)
    save_file({**load_file(folder / VAE), "post_quant_conv.bias": torch.zeros(17)}, folder / VAE)
    return folder


def with_truncated_file(folder: Path) -> Path:
    """The first expert's file lacks its end."""
    shutil.copytree(tiny_checkpoint(), folder)
    content = (folder / TRANSFORMER).read_bytes()
    (folder / TRANSFORMER).write_bytes(content[:-1000])
    return folder
