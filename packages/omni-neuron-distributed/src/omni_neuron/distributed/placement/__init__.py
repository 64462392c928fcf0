"""Which rank stands at which position of a layout, so that every group routes on the machine."""

from omni_neuron.distributed.placement.place import place, place_by_rule
from omni_neuron.distributed.placement.published import published_layout
from omni_neuron.distributed.placement.routability import ROUTED_GROUPS, offending_group
from omni_neuron.distributed.placement.search import find_placement, placements

__all__ = [
    "ROUTED_GROUPS",
    "find_placement",
    "offending_group",
    "place",
    "place_by_rule",
    "placements",
    "published_layout",
]
