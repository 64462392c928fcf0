"""Encode with transformers' UMT5 and write what it gives: ``python umt5.py OUTPUT_FOLDER``.

The checkpoint as ``save_pretrained`` writes it, and ``encoded.safetensors``.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import UMT5Config, UMT5EncoderModel

SEEDS = range(8)
LENGTH = 48  # above the 16 exact distances and above the last bucket's distance
CONFIG = {
    "vocab_size": 301,
    "d_model": 40,
    "d_kv": 12,
    "d_ff": 56,
    "num_layers": 3,
    "num_heads": 4,
    "relative_attention_max_distance": 40,
}


def perturb(module: torch.nn.Module, generator: torch.Generator) -> None:
    """Move every tensor away from its initial value."""
    for parameter in module.parameters():
        spread = parameter.std().item()
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data += (0.5 * spread if spread > 1e-6 else 0.2) * noise


def prompts(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two token sequences of different length, padded with zeros."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(2, CONFIG["vocab_size"], (2, LENGTH), generator=generator)
    lengths = torch.tensor([LENGTH - seed, 7 + 3 * seed])
    mask = (torch.arange(LENGTH) < lengths[:, None]).long()
    return ids * mask, mask


@torch.no_grad()
def main(folder: Path) -> None:
    torch.manual_seed(0)
    model = UMT5EncoderModel(UMT5Config(**CONFIG)).eval()
    perturb(model, torch.Generator().manual_seed(1))
    for block in model.encoder.block:
        # The initial bias is small beside the scores; give it their size, so that a wrong bucket shows.
        block.layer[0].SelfAttention.relative_attention_bias.weight.mul_(6.0)
    model.save_pretrained(folder)
    tensors = {}
    for seed in SEEDS:
        ids, mask = prompts(seed)
        tensors |= {f"{seed}.ids": ids, f"{seed}.mask": mask}
        tensors[f"{seed}.fp32"] = model(ids, mask).last_hidden_state * mask[..., None]
    half = UMT5EncoderModel.from_pretrained(folder, dtype=torch.bfloat16).eval()
    for seed in SEEDS:
        ids, mask = prompts(seed)
        tensors[f"{seed}.bf16"] = half(ids, mask).last_hidden_state * mask[..., None]
    save_file(tensors, folder / "encoded.safetensors")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
