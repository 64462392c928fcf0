"""Random Wan transformers and what diffusers makes of them, computed once in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

SEEDS = range(8)
SMALL = {"num_layers": 2, "num_attention_heads": 4, "ffn_dim": 176, "text_dim": 40, "freq_dim": 32}
GRID = (3, 3, 5)  # 45 tokens: neither 2 nor 4 divides them

# name: (configuration, batch, timestep per token, images: (per sample, tokens each))
DIT_CASES = {
    "t2v": ({"attention_head_dim": 24}, 1, False, None),
    "batch": ({"attention_head_dim": 12, "cross_attn_norm": False}, 2, False, None),
    "condition": ({"attention_head_dim": 32, "in_channels": 36}, 1, False, None),
    "per_token": (
        {"attention_head_dim": 24, "in_channels": 12, "out_channels": 12, "patch_size": (1, 2, 2)},
        2,
        True,
        None,
    ),
    "image": ({"attention_head_dim": 12, "image_dim": 20, "added_kv_proj_dim": 48}, 1, False, (1, 7)),
    "first_last": (
        {"attention_head_dim": 32, "image_dim": 20, "added_kv_proj_dim": 128, "pos_embed_seq_len": 14},
        1,
        False,
        (2, 7),
    ),
}


@pytest.fixture(scope="session")
def dit_reference(tmp_path_factory) -> Path:
    """A folder per case: config, checkpoint, inputs and diffusers' outputs."""
    root = tmp_path_factory.mktemp("dit")
    for name, (config, batch, per_token, images) in DIT_CASES.items():
        folder = root / name
        folder.mkdir()
        config = {**SMALL, **config}
        (folder / "config.json").write_text(json.dumps(config))
        inputs = {}
        for seed in SEEDS:
            made = dit_inputs(seed, config, batch, per_token, images)
            inputs |= {f"{seed}.{key}": value for key, value in made.items()}
        save_file(inputs, folder / "inputs.safetensors")
    script = Path(__file__).parent.parent / "reference" / "dit.py"
    subprocess.run(
        [sys.executable, str(script), str(root)],
        check=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    return root


def dit_inputs(seed, config, batch, per_token, images) -> dict[str, torch.Tensor]:
    """Inputs whose values are exact in bf16; 20 text rows, then zeros, as the text encoder gives them."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator).bfloat16().float()

    t, h, w = GRID
    timestep = torch.randint(0, 1000, (batch,), generator=generator)
    if per_token:
        timestep = timestep[:, None].repeat(1, t * h * w)
        timestep[:, : h * w] = 0  # the first frame is given
    text = normal(batch, 512, config["text_dim"])
    text[:, 20:] = 0
    inputs = {
        "latents": normal(batch, config.get("in_channels", 16), t, 2 * h, 2 * w),
        "timestep": timestep,
        "text": text,
    }
    if images is not None:
        per_sample, length = images
        inputs["image"] = normal(per_sample * batch, length, config["image_dim"])
    return inputs
