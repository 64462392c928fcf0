"""diffusers' Wan transformer on prepared inputs: ``python dit.py FOLDER``.

Runs in its own process. Every sub-folder holds ``config.json`` and ``inputs.safetensors`` (``SEED.latents``,
``SEED.timestep``, ``SEED.text`` and perhaps ``SEED.image``) and gets a random checkpoint, with every tensor
moved away from its initial value, and ``outputs.safetensors`` (``SEED.fp32``, ``SEED.bf16``).
"""

import json
import sys
from pathlib import Path

import torch
from diffusers import WanTransformer3DModel
from safetensors.torch import load_file, save_file

KEPT_IN_FLOAT32 = ("time_embedder", "scale_shift_table", "norm1", "norm2", "norm3")


def write_checkpoint(folder: Path) -> None:
    torch.manual_seed(0)
    config = json.loads((folder / "config.json").read_text())
    model = WanTransformer3DModel.from_config(config)
    for name, parameter in model.named_parameters():
        spread = float(parameter.std()) or 0.4
        parameter += 0.5 * spread * torch.randn_like(parameter)
        if not any(part in name for part in KEPT_IN_FLOAT32):
            # Exact in bf16, so that a bf16 model differs by its arithmetic and not by its weights.
            parameter.copy_(parameter.bfloat16())
    model.save_pretrained(folder)


def run(folder: Path) -> None:
    inputs = load_file(folder / "inputs.safetensors")
    outputs = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        model = WanTransformer3DModel.from_pretrained(folder, torch_dtype=dtype)
        for seed in sorted({key.partition(".")[0] for key in inputs}):
            image = inputs.get(f"{seed}.image")
            outputs[f"{seed}.{name}"] = model(
                inputs[f"{seed}.latents"].to(dtype),
                inputs[f"{seed}.timestep"],
                inputs[f"{seed}.text"].to(dtype),
                None if image is None else image.to(dtype),
                return_dict=False,
            )[0].contiguous()
    save_file(outputs, folder / "outputs.safetensors")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    for case in sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir()):
        write_checkpoint(case)
        run(case)
