"""What to offer in place of a choice that does not fit."""

from __future__ import annotations

import math
from dataclasses import replace

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import place
from omni_neuron.distributed.planner.candidate import Candidate
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.ledger import ledger
from omni_neuron.distributed.planner.search import check_divides, layouts, with_text_encoder
from omni_neuron.distributed.topology import INSTANCES, Topology, instance
from omni_neuron.runtime.errors import InputError

_DEGREES = ("tp", "ulysses", "ring", "cfg")


def nearest_that_fits(job: Job, choice: Choice, topology: Topology) -> Choice | None:
    """The choice with the same storage whose degrees differ least, that fits and routes; None without one.

    Distance is the sum of |log2| of the ratios of degrees; of equals, the one that keeps Ulysses and
    guidance.
    """
    wanted = choice.layout

    def distance(layout: ParallelLayout) -> tuple[float, bool, bool]:
        ratios = (getattr(layout, name) / getattr(wanted, name) for name in _DEGREES)
        far = round(sum(abs(math.log2(ratio)) for ratio in ratios), 9)
        return far, layout.ulysses != wanted.ulysses, layout.cfg != wanted.cfg

    for layout in sorted(layouts(job, topology), key=distance):
        try:
            check_divides(job, layout)
            candidate = with_text_encoder(job, replace(choice, layout=place(layout, topology)), topology)
        except LayoutError:
            continue
        if ledger(job, candidate).total <= topology.hbm_gb_per_core:
            return candidate
    return None


def refuse_when_nothing_fits(job: Job, candidates: list[Candidate], topology: Topology) -> None:
    """Raise InputError, with the choice that comes nearest, when no candidate is accepted."""
    if any(candidate.accepted for candidate in candidates):
        return
    nearest = min((c for c in candidates if c.routable), key=lambda c: c.ledger.total)
    roomier = [
        name for name in INSTANCES if topology.hbm_gb_per_core < instance(name).hbm_gb_per_core < math.inf
    ]
    raise InputError(
        f"{job.model.name} at {job.width}x{job.height}x{job.num_frames} must fit the "
        f"{topology.hbm_gb_per_core:g} GB of a core of {topology.name}, and the nearest layout, "
        f"{nearest.choice.layout} with resident_experts={nearest.choice.resident_experts} in "
        f"{nearest.choice.weight_dtype}, needs {nearest.ledger.total:.1f} GB: use "
        f"{' or '.join(['a smaller size', *roomier])}."
    )
