"""The private surface of the Neuron wheels that this project uses, in one protocol."""

from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, Protocol

ReplicaGroups = tuple[tuple[int, ...], ...]
Function = Callable[..., Any]


class NeuronAdapter(Protocol):
    """One variant of the Neuron stack, as the calling process uses it."""

    @property
    def name(self) -> str:
        """`lite`, `torch_neuron` or `cpu`."""

    def platform_target(self) -> str:
        """What to compile for, such as `trn2` or `trn3-rev2`; RuntimeError where it cannot be found out."""

    def hbm_bytes(self) -> int:
        """Memory of one rank's device in bytes."""

    def logical_core_count(self) -> int:
        """Logical cores of this host; 0 on the CPU."""

    def synchronize(self) -> None:
        """Wait for everything that was queued on the device."""

    def register_replica_groups(self, name: str, groups: Sequence[Sequence[int]]) -> None:
        """Tell the compiler the whole partition of the world that a process group belongs to.

        `name` is the `group_name` of the process group; the order of the ranks in a group is kept.
        """

    def replica_groups(self, name: str) -> ReplicaGroups:
        """The partition registered under `name`; KeyError when there is none."""

    def nki(self) -> ModuleType:
        """The module `nki`, with `language`, `isa` and `collectives` in it: what kernel sources import."""

    def nki_op(
        self, name: str, fn: Function, fake: Function, mutates_args: str | Iterable[str] = ()
    ) -> Function:
        """Make a torch operator `namespace::name` of a function that launches a kernel.

        `fake` returns empty tensors of the result's shapes and dtypes. The hardware libraries trace `fn`
        itself instead, so that the kernel is seen by the compiler.
        """

    def wrap_nki(self, kernel: Function) -> Any:
        """Launcher of an NKI kernel: `wrap_nki(kernel)[lnc](*args, **kwargs)`."""

    def compile_backend(self) -> str | None:
        """Name for `torch.compile(backend=...)`; None where nothing is compiled."""

    def process_group_backend(self) -> str:
        """Name for `torch.distributed.init_process_group`."""

    def restore_gelu(self) -> None:
        """Undo what an imported wheel did to `torch.nn.functional.gelu`, so that Dynamo can trace it."""


def frozen_groups(groups: Iterable[Iterable[int]]) -> ReplicaGroups:
    """Immutable copy of a partition, order kept."""
    return tuple(tuple(group) for group in groups)
