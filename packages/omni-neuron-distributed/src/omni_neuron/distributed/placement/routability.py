"""Which groups of a layout move data between cores, and the first that a machine cannot build."""

from __future__ import annotations

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.topology import Topology

# Data-parallel replicas exchange nothing; pipeline stages talk in pairs, which need no replica group.
ROUTED_GROUPS = ("tp", "ulysses", "ring", "cp", "cfg", "text_encoder", "vae")


def offending_group(layout: ParallelLayout, topology: Topology) -> tuple[str, tuple[int, ...]] | None:
    """Dimension and ranks of the first group that does not route; None when all do."""
    if not topology.torus_rule:
        return None
    judged: set[tuple[int, ...]] = set()
    for name in ROUTED_GROUPS:
        for group in layout.groups(name):
            if len(group) == 1 or group in judged:
                continue
            if not topology.routes(group):
                return name, group
            judged.add(group)
    return None
