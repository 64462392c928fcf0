"""Arithmetic rank layout in the engine's order tp-sp-pp-cfg-dp."""

from __future__ import annotations

from dataclasses import dataclass

from omni_neuron.distributed.errors import LayoutError

DIMENSIONS = ("tp", "cp", "cfg")


@dataclass(frozen=True)
class ParallelLayout:
    """Degrees of tensor, context and classifier-free-guidance parallelism.

    ``rank = cfg_index * (tp * cp) + cp_index * tp + tp_index``: tensor-parallel ranks are neighbours,
    the two guidance branches are farthest apart.
    """

    tp: int = 1
    cp: int = 1
    cfg: int = 1

    def __post_init__(self) -> None:
        for name in DIMENSIONS:
            degree = getattr(self, name)
            if not isinstance(degree, int) or isinstance(degree, bool) or degree < 1:
                raise LayoutError(f"{name}={degree!r} must be an integer of at least 1.")

    @property
    def world_size(self) -> int:
        """Number of ranks of one replica."""
        return self.tp * self.cp * self.cfg

    def check_world_size(self, world_size: int) -> None:
        """Raise :class:`LayoutError` unless the layout fills exactly ``world_size`` ranks."""
        if self.world_size != world_size:
            raise LayoutError(
                f"tp={self.tp} x cp={self.cp} x cfg={self.cfg} = {self.world_size} ranks, but the world "
                f"has {world_size}: start {self.world_size} ranks or change a degree."
            )

    def coordinates(self, rank: int) -> tuple[int, int, int]:
        """``(tp_index, cp_index, cfg_index)`` of a global rank."""
        if not 0 <= rank < self.world_size:
            raise LayoutError(f"rank={rank} must lie in 0..{self.world_size - 1} for {self}.")
        return rank % self.tp, rank // self.tp % self.cp, rank // (self.tp * self.cp)

    def groups(self, name: str) -> list[tuple[int, ...]]:
        """All groups of one dimension, each in list order; together they partition the world.

        ``"text_encoder"`` is the tensor-parallel dimension.
        """
        degree, stride = self._degree_and_stride(name)
        starts = (rank for rank in range(self.world_size) if rank // stride % degree == 0)
        return [tuple(range(start, start + degree * stride, stride)) for start in starts]

    def group_of(self, name: str, rank: int) -> tuple[int, ...]:
        """The group of one dimension that holds ``rank``."""
        self.coordinates(rank)
        return next(group for group in self.groups(name) if rank in group)

    def _degree_and_stride(self, name: str) -> tuple[int, int]:
        match name:
            case "tp" | "text_encoder":
                return self.tp, 1
            case "cp":
                return self.cp, self.tp
            case "cfg":
                return self.cfg, self.tp * self.cp
        raise LayoutError(f"dimension name={name!r} must be tp, cp, cfg or text_encoder.")
