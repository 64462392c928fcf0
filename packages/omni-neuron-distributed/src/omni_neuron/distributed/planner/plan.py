"""A plan: the candidates for a job on an instance, and how well the model meets published runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.placement import place
from omni_neuron.distributed.planner.calibration import predict, published_points
from omni_neuron.distributed.planner.candidate import Candidate, assess
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.machines import machine
from omni_neuron.distributed.planner.nearest import nearest_that_fits, refuse_when_nothing_fits
from omni_neuron.distributed.planner.search import search
from omni_neuron.distributed.planner.seconds import constants
from omni_neuron.distributed.topology import Topology


@dataclass(frozen=True)
class Plan:
    """Candidates, the best first."""

    job: Job
    topology: Topology
    candidates: list[Candidate]

    def as_dict(self, top: int | None = None) -> dict[str, Any]:
        """The JSON output, with at most ``top`` candidates."""
        return {
            "candidates": [candidate.as_dict() for candidate in self.candidates[:top]],
            "calibration": [
                {
                    "name": point.name,
                    "published_s": point.published_s,
                    "predicted_s": round(predict(point, constants()), 3),
                }
                for point in published_points()
            ],
        }


def plan_all(job: Job, topology: Topology) -> Plan:
    """All layouts of the instance; raises InputError when none fits."""
    machine(topology)
    candidates = search(job, topology)
    refuse_when_nothing_fits(job, candidates, topology)
    return Plan(job, topology, candidates)


def plan_one(job: Job, choice: Choice, topology: Topology) -> Plan:
    """Exactly one choice, accepted or not, on the placement that a worker would use.

    Raises LayoutError when it has more ranks than the instance has cores.
    """
    machine(topology)
    refusal = None
    try:
        choice = replace(choice, layout=place(choice.layout, topology))
    except LayoutError as error:
        if choice.layout.world_size > topology.cores:
            raise
        refusal = str(error)
    candidate = assess(job, choice, topology, refusal)
    if not candidate.fits:
        near = nearest_that_fits(job, choice, topology)
        if near is not None:
            candidate.reasons.append(f"The nearest layout that fits is {near.layout}.")
    return Plan(job, topology, [candidate])
