"""libtorch-neuronx-lite, the library that vllm-neuron compiles through.

Member paths: those that the published plugin for SDK 2.32 and 2.33 uses.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import torch

from omni_neuron.runtime import targets
from omni_neuron.runtime.adapter.base import Function, ReplicaGroups, frozen_groups
from omni_neuron.runtime.adapter.wheel_member import installed_nki, wheel_member
from omni_neuron.runtime.errors import SetupError
from omni_neuron.runtime.lite_build import LITE_WHEEL, lite_problem, lite_remedy

PACKAGE = "libtorch_neuronx_lite"


class LiteAdapter:
    """The variant of a host whose vllm-neuron runs on Lite. Needs a build that has `_compiler`."""

    name = "lite"

    def __init__(self) -> None:
        problem = lite_problem()
        if problem:
            raise SetupError(f"{problem}: {lite_remedy()}.")

    def platform_target(self) -> str:
        return str(_member("compile.platform", "get_platform_target")())

    def hbm_bytes(self) -> int:
        table: dict[str, int] = _member("compile.platform", "HBM_MEMORY_GB")
        family = targets.family(self.platform_target())
        gib = table.get(family, targets.DEFAULT_HBM_GIB) if family else targets.DEFAULT_HBM_GIB
        return int(gib * targets.GIB)

    def logical_core_count(self) -> int:
        return int(_member("_compiler", "device_count")())

    def synchronize(self) -> None:
        _member("_compiler", "synchronize")()

    def register_replica_groups(self, name: str, groups: Sequence[Sequence[int]]) -> None:
        registry = _member("_compiler.distributed.mesh_registry", "_MESH_REGISTRY")
        registry[name] = [list(group) for group in groups]

    def replica_groups(self, name: str) -> ReplicaGroups:
        return frozen_groups(_member("_compiler.distributed.mesh_registry", "_MESH_REGISTRY")[name])

    def nki(self) -> ModuleType:
        return installed_nki()

    def nki_op(
        self, name: str, fn: Function, fake: Function, mutates_args: str | Iterable[str] = ()
    ) -> Function:
        define: Function = _member("_compiler", "nki_op")
        operator: Function = define(name, fn, mutates_args=mutates_args)
        return operator

    def wrap_nki(self, kernel: Function) -> Any:
        return _member("nki.nki_hop", "wrap_nki")(kernel)

    def compile_backend(self) -> str | None:
        return self._backend

    def process_group_backend(self) -> str:
        return "cpu:gloo,neuron:neuron"

    def restore_gelu(self) -> None:
        torch.nn.functional.gelu = torch.ops.aten.gelu.default

    @cached_property
    def _backend(self) -> str:
        return str(_member("compile.native_backend", "register")())


def _member(module: str, member: str) -> Any:
    return wheel_member(LITE_WHEEL, f"{PACKAGE}.{module}", member, lite_remedy())
