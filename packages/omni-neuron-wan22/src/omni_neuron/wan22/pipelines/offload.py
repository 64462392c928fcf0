"""Room for the decoder: on trn2 both experts leave the core while the video is decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.runtime.targets import Family, family

SMALL_MEMORY_FAMILY: Family = "trn2"


def needs_offload(device: torch.device) -> bool:
    """Whether experts and decoder do not fit the device side by side."""
    return device.type != "cpu" and family(get_adapter().platform_target()) == SMALL_MEMORY_FAMILY


@contextmanager
def offloaded(modules: Sequence[nn.Module], host: torch.device) -> Iterator[None]:
    """Keep `modules` on `host` during the body.

    Each goes back to where it was when the body ends, also by an exception, and also when another of them
    could not be moved.
    """
    with ExitStack() as restore:
        for module in modules:
            device = next(module.parameters()).device
            restore.callback(module.to, device)
            module.to(host)
        yield
