"""The placement that a layout gets on a machine, or the reason why it gets none."""

from __future__ import annotations

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement.nearest import nearest_layout
from omni_neuron.distributed.placement.published import published_layout
from omni_neuron.distributed.placement.routability import offending_group
from omni_neuron.distributed.placement.search import find_placement
from omni_neuron.distributed.topology import Topology
from omni_neuron.runtime import envs


def place(layout: ParallelLayout, topology: Topology) -> ParallelLayout:
    """The layout with a placement under which every group routes.

    A placement that the layout carries is checked and kept. Otherwise: the arithmetic one where the machine
    has no rule, or ``VLLM_NEURON_SWITCH_CC=1`` asks for it; else the published one; else the first found.
    The arithmetic placement is None in the result, as it takes no groups of its own.

    Raises:
        LayoutError: more ranks than cores, or a group that does not route; the nearest layout is named.
    """
    if layout.world_size > topology.cores:
        raise LayoutError(
            f"{layout} = {layout.world_size} ranks exceed the {topology.cores} cores of {topology.name}: "
            f"use {nearest_layout(layout, topology)}, the nearest layout that routes."
        )
    if layout.placement is not None or not topology.torus_rule:
        return _checked(layout, topology, "leave out its placement")
    if topology.target == "trn2" and envs.switch_cc():
        return _checked(layout, topology, f"unset {envs.switch_cc.name}")
    return place_by_rule(layout, topology)


def place_by_rule(layout: ParallelLayout, topology: Topology) -> ParallelLayout:
    """What :func:`place` gives a layout without a placement on a torus with a rule, whatever the environment.

    Raises:
        LayoutError: a group does not route; the nearest layout is named.
    """
    published = _published(layout, topology)
    if published is not None and offending_group(published, topology) is None:
        return published
    found = find_placement(layout, topology)
    return _checked(layout if found is None else layout.with_placement(found), topology)


def _published(layout: ParallelLayout, topology: Topology) -> ParallelLayout | None:
    if layout.dp * layout.pp > 1:
        return None
    return published_layout(
        layout.tp,
        layout.cp,
        layout.cfg,
        topology,
        ulysses=layout.ulysses,
        ring=layout.ring,
        vae=layout.vae,
        text_encoder=layout.text_encoder,
    )


def _checked(layout: ParallelLayout, topology: Topology, remedy: str = "") -> ParallelLayout:
    """The layout, if it routes; ``remedy`` is what to do where other ranks at the same degrees would."""
    offence = offending_group(layout, topology)
    if offence is None:
        arithmetic = layout.placement == tuple(range(layout.world_size))
        return layout.with_placement(None) if arithmetic else layout
    name, group = offence
    nearest = nearest_layout(layout, topology)
    if nearest.with_placement(None) != layout.with_placement(None):
        remedy = f"use {nearest}, the nearest layout that routes"
    raise LayoutError(
        f"{layout} does not route on {topology.name}: the {name} group {list(group)} cannot be built, "
        f"{topology.why_not(group)}; {remedy}."
    )
