"""Room for the decoder: on trn2 both experts leave the core while the video is decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from omni_neuron.runtime.adapter import get_adapter

SMALL_MEMORY_FAMILY = "trn2"


def needs_offload(device: torch.device) -> bool:
    """Whether experts and decoder do not fit the device side by side."""
    return device.type != "cpu" and get_adapter().platform_target().startswith(SMALL_MEMORY_FAMILY)


@contextmanager
def offloaded(modules: Sequence[nn.Module], host: torch.device) -> Iterator[None]:
    """Keep `modules` on `host` during the body, and bring them back after it, also after an exception."""
    devices = [next(module.parameters()).device for module in modules]
    try:
        for module in modules:
            module.to(host)
        yield
    finally:
        for module, device in zip(modules, devices, strict=True):
            module.to(device)
