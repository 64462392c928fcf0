"""Which rank does what: degrees, coordinates and groups, in the engine's order tp-sp-pp-cfg-dp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from omni_neuron.distributed.errors import LayoutError

DIMENSIONS = ("tp", "cp", "cfg")
GROUP_NAMES = ("tp", "ulysses", "ring", "cp", "pp", "cfg", "dp", "text_encoder", "vae")
TEXT_ENCODER_GROUPS = ("tp", "tp_cp", "world")


class Coordinates(NamedTuple):
    """Indices of one rank in every dimension; ``cp == ring * U + ulysses`` for Ulysses groups of U."""

    tp: int
    cp: int
    cfg: int
    pp: int
    dp: int
    ulysses: int
    ring: int


@dataclass(frozen=True, init=False)
class ParallelLayout:
    """Degrees of parallelism and, where the machine asks for one, the placement of the ranks.

    A *position* counts through the dimensions, tensor parallelism fastest:
    ``position = tp + T * (ulysses + U * (ring + R * (pp + P * (cfg + G * dp))))``. Global rank r runs on
    core r, and ``placement[position]`` is the rank at a position. None leaves it to ``place``; until then the
    layout is the arithmetic one, in which the two are equal.

    Args:
        tp, cp, cfg, dp, pp: degrees of tensor, context, guidance, data and pipeline parallelism.
        ulysses, ring: the factors of ``cp``. One left out follows from the other; with neither, the whole
            of ``cp`` is the ring (keys and values may then be gathered over it as well).
        vae: ranks that share the decoding of one video: consecutive ranks of one data-parallel replica.
        placement: a permutation of the ranks.
        text_encoder: what the text encoder is sharded over: ``"tp"``, ``"tp_cp"`` or ``"world"``.

    Raises:
        LayoutError: a degree below 1, factors that do not make ``cp``, a ``vae`` that does not divide a
            replica, a placement that is no permutation.
    """

    tp: int
    cp: int
    cfg: int
    dp: int
    pp: int
    ulysses: int
    ring: int
    vae: int
    placement: tuple[int, ...] | None
    text_encoder: str

    def __init__(
        self,
        tp: int = 1,
        cp: int = 1,
        cfg: int = 1,
        dp: int = 1,
        pp: int = 1,
        ulysses: int | None = None,
        ring: int | None = None,
        vae: int = 1,
        placement: Sequence[int] | None = None,
        text_encoder: str = "tp",
    ) -> None:
        degrees = {"tp": tp, "cp": cp, "cfg": cfg, "dp": dp, "pp": pp, "vae": vae}
        degrees |= {
            name: factor for name, factor in (("ulysses", ulysses), ("ring", ring)) if factor is not None
        }
        for name, degree in degrees.items():
            if not isinstance(degree, int) or isinstance(degree, bool) or degree < 1:
                raise LayoutError(f"{name}={degree!r} must be an integer of at least 1.")
        if ulysses is None:
            ulysses = 1 if ring is None else max(1, cp // ring)
        ring = max(1, cp // ulysses) if ring is None else ring
        if ulysses * ring != cp:
            raise LayoutError(
                f"ulysses={ulysses} x ring={ring} must be cp={cp}: set cp={ulysses * ring} or other factors."
            )
        if text_encoder not in TEXT_ENCODER_GROUPS:
            raise LayoutError(
                f"text_encoder={text_encoder!r} must be one of {', '.join(TEXT_ENCODER_GROUPS)}."
            )
        fields = {**degrees, "ulysses": ulysses, "ring": ring, "text_encoder": text_encoder}
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if self.replica_size % vae:
            raise LayoutError(
                f"vae={vae} must divide the {self.replica_size} ranks of a replica of {self}: "
                f"use a divisor of {self.replica_size}."
            )
        object.__setattr__(self, "placement", self._checked(placement))

    def _checked(self, placement: Sequence[int] | None) -> tuple[int, ...] | None:
        if placement is None:
            return None
        if sorted(placement) != list(range(self.world_size)):
            raise LayoutError(
                f"placement of {self} must hold each rank of 0..{self.world_size - 1} once, "
                f"not {list(placement)}."
            )
        return tuple(placement)

    def __str__(self) -> str:
        degrees = [("tp", self.tp), ("cp", self.cp), ("cfg", self.cfg)]
        degrees += [(name, getattr(self, name)) for name in ("dp", "pp") if getattr(self, name) > 1]
        text = " x ".join(f"{name}={degree}" for name, degree in degrees)
        if self.ulysses > 1:
            text += f" (ulysses={self.ulysses} x ring={self.ring})"
        return text + (f", vae={self.vae}" if self.vae > 1 else "")

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.tp * self.cp * self.cfg * self.dp * self.pp

    @property
    def replica_size(self) -> int:
        """Number of ranks that serve one request together."""
        return self.world_size // self.dp

    def check_world_size(self, world_size: int) -> None:
        """Raise :class:`LayoutError` unless the layout fills exactly ``world_size`` ranks."""
        if self.world_size != world_size:
            raise LayoutError(
                f"{self} = {self.world_size} ranks, but the world has {world_size}: "
                f"start {self.world_size} ranks or change a degree."
            )

    def with_placement(self, placement: Sequence[int] | None) -> ParallelLayout:
        """The same degrees on other ranks."""
        return replace(self, placement=None if placement is None else tuple(placement))

    def coordinates(self, rank: int) -> Coordinates:
        """Where a global rank stands in every dimension."""
        if rank not in range(self.world_size):
            raise LayoutError(f"rank={rank} must lie in 0..{self.world_size - 1} for {self}.")
        rest = rank if self.placement is None else self.placement.index(rank)
        indices = []
        for degree in (self.tp, self.ulysses, self.ring, self.pp, self.cfg, self.dp):
            rest, index = divmod(rest, degree)
            indices.append(index)
        tp, ulysses, ring, pp, cfg, dp = indices
        return Coordinates(tp, ring * self.ulysses + ulysses, cfg, pp, dp, ulysses, ring)

    def groups(self, name: str) -> list[tuple[int, ...]]:
        """All groups of one dimension (see ``GROUP_NAMES``) as global ranks in list order.

        Together they partition the world. The order in a group says who holds which shard; it need not
        ascend.
        """
        if name == "vae":
            return self._vae_groups()
        degree, stride = self._degree_and_stride(self.text_encoder if name == "text_encoder" else name)
        ranks = self.placement or range(self.world_size)
        starts = (start for start in range(self.world_size) if start // stride % degree == 0)
        return [tuple(ranks[start + stride * index] for index in range(degree)) for start in starts]

    def group_of(self, name: str, rank: int) -> tuple[int, ...]:
        """The group of one dimension that holds ``rank``."""
        self.coordinates(rank)
        return next(group for group in self.groups(name) if rank in group)

    def _vae_groups(self) -> list[tuple[int, ...]]:
        ranks, size = self.placement or range(self.world_size), self.replica_size
        replicas = (sorted(ranks[start : start + size]) for start in range(0, self.world_size, size))
        return [
            tuple(replica[first : first + self.vae])
            for replica in replicas
            for first in range(0, size, self.vae)
        ]

    def _degree_and_stride(self, name: str) -> tuple[int, int]:
        sequence = self.tp * self.cp
        strides = {
            "tp": (self.tp, 1),
            "ulysses": (self.ulysses, self.tp),
            "ring": (self.ring, self.tp * self.ulysses),
            "cp": (self.cp, self.tp),
            "tp_cp": (sequence, 1),
            "pp": (self.pp, sequence),
            "cfg": (self.cfg, sequence * self.pp),
            "dp": (self.dp, sequence * self.pp * self.cfg),
            "world": (self.world_size, 1),
        }
        if name not in strides:
            raise LayoutError(f"dimension name={name!r} must be one of {', '.join(GROUP_NAMES)}.")
        return strides[name]
