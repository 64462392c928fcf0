"""Which ranks take part in a collective, in which order."""

from collections.abc import Sequence
from typing import Any

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import current_core


class ReplicaGroup:
    """Groups of global ranks, without overlaps. One program serves all ranks, so it lists every group."""

    def __init__(self, groups: Sequence[Sequence[int]]) -> None:
        if isinstance(groups, range) or any(isinstance(g, range) for g in groups):
            raise KernelError(
                "collective", "a ReplicaGroup of range objects does not compile: pass tuples of ranks."
            )
        self.groups = tuple(tuple(int(rank) for rank in group) for group in groups)
        ranks = [rank for group in self.groups for rank in group]
        if not ranks or len(set(ranks)) != len(ranks):
            raise KernelError("collective", f"groups = {self.groups}: every rank stands in one group, once.")

    def of(self, rank: int, ranks: int) -> tuple[int, ...]:
        """The group of a rank, in a launch of so many ranks."""
        for group in self.groups:
            if any(not 0 <= member < ranks for member in group):
                raise KernelError(
                    "collective", f"group {group} names ranks beyond the {ranks} of this launch."
                )
            if rank in group:
                return group
        raise KernelError("collective", f"rank {rank} is in none of the groups {self.groups}.")

    def __repr__(self) -> str:
        return f"ReplicaGroup({self.groups})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ReplicaGroup) and self.groups == other.groups

    def __hash__(self) -> int:
        return hash(self.groups)


def as_group(value: Any) -> ReplicaGroup:
    return value if isinstance(value, ReplicaGroup) else ReplicaGroup(value)


def own_group(replica_group: Any) -> tuple[int, ...]:
    """The ranks with which the running one meets, in the order of its group."""
    core = current_core()
    return as_group(replica_group).of(core.rank, core.world.ranks)
