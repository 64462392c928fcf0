"""Final latents on disk, for whoever compares or continues."""

from pathlib import Path

import torch
from safetensors.torch import save_file

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.media.output import whole_file

KEY = "latents"
SUFFIX = ".safetensors"


def check_latents_path(path: str | Path) -> None:
    """Refuse a name that `write_latents` would refuse."""
    if Path(path).suffix.lower() != SUFFIX:
        raise InputError(f"save_latents is {str(path)!r}, but its name must end in {SUFFIX}.")


def write_latents(path: str | Path, latents: torch.Tensor) -> Path:
    """Write one tensor under the key `latents`.

    Args:
        path: ends in ``.safetensors``; replaced only when the new file is complete.
        latents: `[C, T, h, w]`, contiguous.

    Raises:
        InputError: a bad suffix, or a place that cannot be written.
    """
    check_latents_path(path)
    with whole_file(path) as draft:
        save_file({KEY: latents}, draft)
    return Path(path)
