"""`nki.collectives`: exchanges between the ranks of a launch."""

from omni_neuron.sim.nki.collectives.groups import ReplicaGroup
from omni_neuron.sim.nki.collectives.operations import (
    all_gather,
    all_reduce,
    all_to_all,
    collective_permute,
    collective_permute_implicit,
    collective_permute_implicit_current_processing_rank_id,
    collective_permute_implicit_reduce,
    rank_id,
    reduce_scatter,
)  # fmt: skip
from omni_neuron.sim.nki.collectives.variable import all_gather_v, all_to_all_v

__all__ = [
    "ReplicaGroup", "all_gather", "all_gather_v", "all_reduce", "all_to_all", "all_to_all_v",
    "collective_permute", "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id", "collective_permute_implicit_reduce",
    "rank_id", "reduce_scatter",
]  # fmt: skip
