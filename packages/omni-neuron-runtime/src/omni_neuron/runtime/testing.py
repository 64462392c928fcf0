"""One body for a test, on a Neuron device or on the CPU in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.runtime.mode import detect_mode

DEVICE_TYPE = "neuron"
HOST = torch.device("cpu")
CPU_BACKEND = "aot_eager"


def run_on_device(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `function`, compiled as one graph, on this process's device, and return its result on the host.

    Devices run whole graphs only. In CPU mode the graph is traced in the same way and run eagerly, so that
    what a device would compile is what is tested. A module, also one whose method is called, is moved to the
    device and stays there.
    """
    backend = get_adapter().compile_backend() or CPU_BACKEND
    device = torch.device(DEVICE_TYPE, 0) if detect_mode().is_hardware else HOST
    module = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
    if isinstance(module, nn.Module):
        module.to(device)
    compiled = torch.compile(function, backend=backend, fullgraph=True, dynamic=False)
    return _moved(compiled(*_moved(args, device), **_moved(kwargs, device)), HOST)


def _moved(values: Any, device: torch.device) -> Any:
    return tree_map(lambda value: value.to(device) if isinstance(value, Tensor) else value, values)
