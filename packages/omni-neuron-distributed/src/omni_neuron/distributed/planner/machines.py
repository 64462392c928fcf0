"""What a logical core computes and how fast its memory is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from omni_neuron.distributed.planner.data_files import read_table
from omni_neuron.distributed.topology import Topology
from omni_neuron.runtime.errors import InputError


@dataclass(frozen=True)
class Machine:
    """Figures of one logical core; ``load_gb_s`` is of the whole instance, from host memory."""

    flops_per_s: float
    hbm_gb_s: float
    core_to_core_gb_s: float
    load_gb_s: float


@lru_cache
def machine(topology: Topology) -> Machine:
    """The figures behind a topology; raises InputError for a target that has none."""
    table = read_table("machines")
    if topology.target not in table:
        raise InputError(
            f"instance={topology.name!r} must be a Neuron machine, of which the speed is known: "
            "the nearest valid choice is trn2.48xlarge."
        )
    entry = table[topology.target]
    hbm = entry["hbm_gb_s"] / topology.cores_per_chip
    return Machine(
        flops_per_s=entry["tflops"] * 1e12 / topology.cores_per_chip,
        hbm_gb_s=hbm,
        core_to_core_gb_s=hbm * entry["core_to_core_share"],
        load_gb_s=entry["load_gb_s"],
    )
