"""The names of Lite, and what its import does to the process, as far as it is publicly known."""

import os
import types

import torch
import torch.distributed as dist
from event_log import record

torch.utils.rename_privateuse1_backend("neuron")
_module = types.ModuleType("torch.neuron")
_module.is_available = lambda: True
_module.current_device = lambda: 0
_module.device_count = lambda: 1
torch._register_device_module("neuron", _module)

_gelu = torch.nn.functional.gelu
torch.nn.functional.gelu = lambda *args, **kwargs: _gelu(*args, **kwargs)

os.environ.setdefault("NEURON_RT_ROOT_COMM_ID", "localhost:62182")


def _process_group(store, rank, size, timeout):
    record("process group", threads=torch.get_num_threads())
    return dist.ProcessGroupGloo(store, rank, size, timeout)


dist.Backend.register_backend("neuron", _process_group, devices=["neuron"])
