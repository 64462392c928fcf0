"""The parallel dimensions of a model as one rank sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.distributed as dist

from omni_neuron.distributed.errors import LayoutError


@dataclass(frozen=True)
class ParallelGroup:
    """One parallel dimension as seen by this rank.

    Args:
        name: ``"tp"``, ``"cp"``, ``"ulysses"``, ``"ring"``, ``"cfg"``, ``"text_encoder"`` or ``"vae"``.
        ranks: global ranks in list order; the order defines who holds which shard.
        rank_in_group: this rank's place in ``ranks``.
        process_group: the live group of exactly these ranks; None exactly when the size is 1.

    Raises:
        LayoutError: the fields contradict each other or the live process group.
    """

    name: str
    ranks: tuple[int, ...]
    rank_in_group: int
    process_group: dist.ProcessGroup | None = None
    # Plain constants, so that a traced graph never has to ask the process group.
    group_name: str = field(init=False, repr=False, compare=False, default="")
    process_group_order: tuple[int, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        if not self.ranks or len(set(self.ranks)) != len(self.ranks):
            raise LayoutError(f"{self.name} group ranks={self.ranks} must be distinct and at least one.")
        if not 0 <= self.rank_in_group < self.size:
            raise LayoutError(
                f"{self.name} group rank_in_group={self.rank_in_group} must lie in 0..{self.size - 1}."
            )
        if (self.process_group is None) != (self.size == 1):
            raise LayoutError(
                f"{self.name} group of size {self.size} has "
                f"{'no' if self.process_group is None else 'a'} process group: "
                "pass one exactly when the size is above 1."
            )
        if self.process_group is None:
            object.__setattr__(self, "process_group_order", (0,))
            return
        live = dist.get_process_group_ranks(self.process_group)
        if sorted(live) != sorted(self.ranks):
            raise LayoutError(
                f"{self.name} group ranks={self.ranks} differ from the live process group's {tuple(live)}: "
                "build both from the same layout."
            )
        here = live[self.process_group.rank()]
        if here != self.ranks[self.rank_in_group]:
            raise LayoutError(
                f"{self.name} group rank_in_group={self.rank_in_group} is global rank "
                f"{self.ranks[self.rank_in_group]}, but this process is rank {here}: "
                "use the index of this rank in the list."
            )
        object.__setattr__(self, "group_name", self.process_group.group_name)
        object.__setattr__(self, "process_group_order", tuple(live.index(rank) for rank in self.ranks))

    @property
    def size(self) -> int:
        """Number of ranks in the group."""
        return len(self.ranks)

    @classmethod
    def single(cls, name: str) -> ParallelGroup:
        """A group of one rank: every operation over it is the identity."""
        return cls(name, (0,), 0)

    @classmethod
    def from_process_group(
        cls, name: str, ranks: Sequence[int], process_group: dist.ProcessGroup | None
    ) -> ParallelGroup:
        """The group of this process, from a live process group and its ranks in list order.

        A process group of one rank is dropped, as the rest of the package expects.
        """
        if len(ranks) == 1:
            return cls(name, tuple(ranks), 0)
        here = dist.get_rank()
        if here not in ranks:
            raise LayoutError(f"{name} group ranks={tuple(ranks)} must contain this process, rank {here}.")
        return cls(name, tuple(ranks), list(ranks).index(here), process_group)


@dataclass(frozen=True)
class ParallelContext:
    """Groups a model runs in. Default everywhere: one rank.

    ``ulysses`` and ``ring`` factor ``cp``: position ``i`` of its list is position ``i % U`` of an Ulysses
    group of U ranks and ``i // U`` of a ring. Left out, the whole of ``cp`` is the ring.
    ``tp_reduce_dtype`` is the payload of tensor-parallel all-reduces: float32 adds no rounding, so that
    a bf16 layer rounds once, as on one rank; bfloat16 halves the bytes for one rounding before the wire.
    With ``ring_attention`` keys and values travel around ``ring``, a block at a time; otherwise every rank
    gathers all of them.
    """

    tp: ParallelGroup
    cp: ParallelGroup
    cfg: ParallelGroup
    text_encoder: ParallelGroup
    tp_reduce_dtype: torch.dtype = torch.float32
    ulysses: ParallelGroup = ParallelGroup("ulysses", (0,), 0)
    ring: ParallelGroup = ParallelGroup("ring", (0,), 0)
    ring_attention: bool = False

    def __post_init__(self) -> None:
        cp = self.cp
        if self.ulysses.size == self.ring.size == 1 < cp.size:
            ring = ParallelGroup("ring", cp.ranks, cp.rank_in_group, cp.process_group)
            object.__setattr__(self, "ring", ring)
        self._check_factors()
        if self.tp_reduce_dtype not in (torch.float32, torch.bfloat16):
            raise LayoutError(
                f"tp_reduce_dtype={self.tp_reduce_dtype} must be torch.float32 or torch.bfloat16."
            )

    def _check_factors(self) -> None:
        cp, size = self.cp, self.ulysses.size
        row, column = divmod(cp.rank_in_group, size)
        expected = {"ulysses": cp.ranks[row * size : (row + 1) * size], "ring": cp.ranks[column::size]}
        for group in (self.ulysses, self.ring):
            if cp.size > 1 and group.size > 1 and group.ranks != expected[group.name]:
                raise LayoutError(
                    f"{group.name} group ranks={group.ranks} must be {expected[group.name]} of the cp group "
                    f"{cp.ranks}: Ulysses groups are consecutive in its list, rings are strided."
                )
        if size * self.ring.size != cp.size:
            raise LayoutError(
                f"ulysses={size} x ring={self.ring.size} must be cp={cp.size}: pass both groups, or neither."
            )

    @classmethod
    def single_rank(cls) -> ParallelContext:
        """The context of a model that runs alone."""
        tp, cp, cfg, text_encoder = map(ParallelGroup.single, ("tp", "cp", "cfg", "text_encoder"))
        return cls(tp, cp, cfg, text_encoder)
