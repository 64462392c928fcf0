"""Decode with diffusers' Wan VAE and write what it gives: ``python vae.py OUTPUT_FOLDER``.

For each family: the checkpoint folder as ``save_pretrained`` writes it, and ``decoded.safetensors``.
``defaults.json`` has the constructor's defaults, ``sizes.json`` the parameters that decoding needs in the
published configurations.
"""

import inspect
import json
import sys
from pathlib import Path

import torch
from diffusers import AutoencoderKLWan
from safetensors.torch import save_file

WIDTHS = {"dim_mult": [1, 2, 4, 4], "temperal_downsample": [False, True, True]}
FAMILIES = {
    "vae21": {**WIDTHS, "base_dim": 8, "z_dim": 4, "num_res_blocks": 2},
    "vae22": {
        **WIDTHS,
        "base_dim": 4,
        "decoder_base_dim": 8,
        "z_dim": 6,
        "num_res_blocks": 1,
        "is_residual": True,
        "in_channels": 12,
        "out_channels": 12,
        "patch_size": 2,
        "scale_factor_spatial": 16,
    },
}
PUBLISHED = {
    "2.1": {},
    "2.2": {
        "base_dim": 160,
        "decoder_base_dim": 256,
        "z_dim": 48,
        "latents_mean": [0.0] * 48,
        "latents_std": [1.0] * 48,
        "is_residual": True,
        "in_channels": 12,
        "out_channels": 12,
        "patch_size": 2,
        "scale_factor_spatial": 16,
    },
}
FRAMES = (1, 2, 3, 5)
SEEDS = range(8)


def perturb(module: torch.nn.Module, generator: torch.Generator) -> None:
    """Move every tensor away from its initial value."""
    for parameter in module.parameters():
        spread = parameter.std().item() if parameter.numel() > 1 else 0.0
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data += (0.5 * spread if spread > 1e-6 else 0.2) * noise


@torch.no_grad()
def write_family(folder: Path, name: str, overrides: dict) -> None:
    torch.manual_seed(0)
    z_dim = overrides["z_dim"]
    statistics = {
        "latents_mean": torch.linspace(-0.5, 0.5, z_dim).tolist(),
        "latents_std": torch.linspace(0.5, 2.0, z_dim).tolist(),
    }
    vae = AutoencoderKLWan(**overrides, **statistics).eval()
    perturb(vae, torch.Generator().manual_seed(1))
    vae.save_pretrained(folder / name)

    tensors = {}
    for frames in FRAMES:
        z = torch.randn(2, z_dim, frames, 4, 6, generator=torch.Generator().manual_seed(frames))
        tensors[f"z.{frames}"] = z
        tensors[f"video.{frames}"] = vae.decode(z, return_dict=False)[0]
    latents = [
        torch.randn(1, z_dim, 2, 4, 4, generator=torch.Generator().manual_seed(100 + seed)) for seed in SEEDS
    ]
    for seed, z in zip(SEEDS, latents, strict=True):
        tensors[f"seed_z.{seed}"] = z
        tensors[f"seed_fp32.{seed}"] = vae.decode(z, return_dict=False)[0]
    vae.to(torch.bfloat16)
    for seed, z in zip(SEEDS, latents, strict=True):
        tensors[f"seed_bf16.{seed}"] = vae.decode(z.bfloat16(), return_dict=False)[0]
    save_file(
        {key: value.contiguous() for key, value in tensors.items()}, folder / name / "decoded.safetensors"
    )


def write_published(folder: Path) -> None:
    signature = inspect.signature(inspect.unwrap(AutoencoderKLWan.__init__))
    defaults = {name: value.default for name, value in signature.parameters.items() if name != "self"}
    (folder / "defaults.json").write_text(json.dumps(defaults))
    sizes = []
    for changes in PUBLISHED.values():
        with torch.device("meta"):
            vae = AutoencoderKLWan(**changes)
        modules = (vae.decoder, vae.post_quant_conv)
        sizes.append((changes, sum(p.numel() for module in modules for p in module.parameters())))
    (folder / "sizes.json").write_text(json.dumps(sizes))


if __name__ == "__main__":
    torch.set_num_threads(1)
    write_published(Path(sys.argv[1]))
    for family, values in FAMILIES.items():
        write_family(Path(sys.argv[1]), family, values)
