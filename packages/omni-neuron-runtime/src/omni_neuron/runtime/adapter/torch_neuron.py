"""TorchNeuron, the native torch backend: torch-neuronx 2.13.3 or newer. (An older one is for XLA.)

Devices are counted and waited for through `torch.accelerator`, which asks the backend that the wheel
registers.
"""

from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

import torch

from omni_neuron.runtime import targets
from omni_neuron.runtime.adapter.base import Function, ReplicaGroups, frozen_groups
from omni_neuron.runtime.adapter.wheel_member import installed_nki, wheel_member
from omni_neuron.runtime.wheels import NEURON_INDEX

PACKAGE = "torch_neuronx"
WHEEL = "torch-neuronx"
REMEDY = f'run: pip install --extra-index-url {NEURON_INDEX} "{WHEEL}>=2.13.3"'


class TorchNeuronAdapter:
    """The variant of a host with TorchNeuron and without Lite."""

    name = "torch_neuron"

    def __init__(self) -> None:
        _member("", "nki_op")

    def platform_target(self) -> str:
        return str(_member("utils", "get_platform_target")())

    def hbm_bytes(self) -> int:
        return targets.hbm_bytes(self.platform_target())

    def logical_core_count(self) -> int:
        return torch.accelerator.device_count()

    def synchronize(self) -> None:
        torch.accelerator.synchronize()

    def register_replica_groups(self, name: str, groups: Sequence[Sequence[int]]) -> None:
        _member("distributed.mesh_registry", "_MESH_REGISTRY")[name] = [list(group) for group in groups]

    def replica_groups(self, name: str) -> ReplicaGroups:
        return frozen_groups(_member("distributed.mesh_registry", "_MESH_REGISTRY")[name])

    def nki(self) -> ModuleType:
        return installed_nki()

    def nki_op(
        self, name: str, fn: Function, fake: Function, mutates_args: str | Iterable[str] = ()
    ) -> Function:
        define: Function = _member("", "nki_op")
        operator: Function = define(name, fn, mutates_args=mutates_args)
        return operator

    def wrap_nki(self, kernel: Function) -> Any:
        return _member("nki_hop", "wrap_nki")(kernel)

    def compile_backend(self) -> str | None:
        return "neuron"

    def process_group_backend(self) -> str:
        return "neuron"

    def restore_gelu(self) -> None:
        """TorchNeuron leaves it as torch made it."""


def _member(module: str, member: str) -> Any:
    return wheel_member(WHEEL, f"{PACKAGE}.{module}" if module else PACKAGE, member, REMEDY)
