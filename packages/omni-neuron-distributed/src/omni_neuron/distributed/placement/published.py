"""The two placements that were published for trn2, as cuts of one 8 x 8 mesh of its 64 cores.

Row r of the mesh is one tensor-parallel group of eight, on two neighbouring chips; column c takes one core of
each of eight chips.
"""

from __future__ import annotations

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.topology import Topology

Mesh = tuple[tuple[int, ...], ...]
_SIDE = 8


def physical_mesh() -> Mesh:
    """Rows of the mesh: chip pairs (0, 3), (1, 2) of each torus row, four cores of either chip."""
    pairs = [(row * 4 + left, row * 4 + right) for row in range(4) for left, right in ((0, 3), (1, 2))]
    return tuple(tuple(4 * chip + offset for chip in pair for offset in range(4)) for pair in pairs)


def published_layout(
    tp: int,
    cp: int,
    cfg: int,
    topology: Topology,
    *,
    ulysses: int | None = None,
    ring: int | None = None,
    vae: int = 1,
    text_encoder: str = "tp",
) -> ParallelLayout | None:
    """The published placement for these degrees; None where none was published.

    Layout A, for cp 8 and tp x cfg 8: context parallelism runs down the columns, a row is cut into ``cfg``
    tensor-parallel blocks. Layout B, for tp 8 and cp above 1: tensor parallelism runs along the first rows, a
    column is cut into guidance blocks. The requested factors of cp are kept.

    Only the 64 logical cores of target ``trn2`` have the mesh.
    """
    if topology.target != "trn2" or topology.cores_per_chip != 4:
        return None
    mesh = physical_mesh()
    if cp == _SIDE and tp * cfg == _SIDE:
        order = [mesh[c][g * tp + t] for g in range(cfg) for c in range(cp) for t in range(tp)]
    elif tp == _SIDE and cp > 1 and cp * cfg <= _SIDE:
        order = [mesh[c * cfg + g][t] for g in range(cfg) for c in range(cp) for t in range(tp)]
    else:
        return None
    if max(order) >= len(order):
        return None
    return ParallelLayout(
        tp, cp, cfg, ulysses=ulysses, ring=ring, vae=vae, placement=order, text_encoder=text_encoder
    )
