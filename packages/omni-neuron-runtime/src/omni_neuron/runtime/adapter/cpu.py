"""No Neuron stack: the host's memory, groups in a dictionary, nothing compiled."""

from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

import torch

from omni_neuron.runtime import envs
from omni_neuron.runtime.adapter.base import Function, ReplicaGroups, frozen_groups
from omni_neuron.runtime.errors import SetupError
from omni_neuron.runtime.host_memory import host_memory_bytes

NKI_RUNTIME_GROUP = "omni_neuron.nki_runtime"


class CpuAdapter:
    """The variant of CPU mode, and of a process that uses no device at all."""

    name = "cpu"

    def __init__(self) -> None:
        self._groups: dict[str, ReplicaGroups] = {}

    def platform_target(self) -> str:
        return envs.platform_target_override() or "cpu"

    def hbm_bytes(self) -> int:
        return host_memory_bytes()

    def logical_core_count(self) -> int:
        return 0

    def synchronize(self) -> None:
        """The CPU computes in order: there is nothing to wait for."""

    def register_replica_groups(self, name: str, groups: Sequence[Sequence[int]]) -> None:
        self._groups[name] = frozen_groups(groups)

    def replica_groups(self, name: str) -> ReplicaGroups:
        return self._groups[name]

    def nki(self) -> ModuleType:
        """The interpreter: the module that the one entry point of `omni_neuron.nki_runtime` names."""
        offers = list(entry_points(group=NKI_RUNTIME_GROUP))
        if not offers:
            raise SetupError(
                f"Kernels need NKI, and no installed package offers an interpreter of it as "
                f"{NKI_RUNTIME_GROUP}: run pip install omni-neuron-sim, or unset {envs.nki_simulator.name} "
                f"to use the torch forms."
            )
        if len(offers) > 1:
            names = ", ".join(sorted(offer.value for offer in offers))
            raise SetupError(
                f"{names} all offer {NKI_RUNTIME_GROUP}, but one runs a kernel: uninstall the others."
            )
        try:
            module: ModuleType = offers[0].load()
        except ImportError as error:
            raise SetupError(
                f"{offers[0].value}, which offers {NKI_RUNTIME_GROUP}, cannot be imported ({error}): install "
                "its package anew."
            ) from error
        return module

    def nki_op(
        self, name: str, fn: Function, fake: Function, mutates_args: str | Iterable[str] = ()
    ) -> Function:
        operator = torch.library.custom_op(name, fn, mutates_args=mutates_args)
        operator.register_fake(fake)
        return operator

    def wrap_nki(self, kernel: Function) -> Any:
        if not envs.nki_simulator():
            raise SetupError(
                f"A kernel runs on the CPU only in an interpreter: set {envs.nki_simulator.name}=1."
            )
        return _Launcher(self.nki(), kernel)

    def compile_backend(self) -> str | None:
        return None

    def process_group_backend(self) -> str:
        return "gloo"

    def restore_gelu(self) -> None:
        """No wheel that wraps it is in this process."""


class _Launcher:
    """A kernel in the interpreter, launched as the hardware libraries launch it."""

    def __init__(self, nki: ModuleType, kernel: Any) -> None:
        self._nki = nki
        self._kernel = kernel

    def __getitem__(self, lnc: int) -> Function:
        launch: Function = self._nki.simulate(self._kernel[lnc])
        return launch
