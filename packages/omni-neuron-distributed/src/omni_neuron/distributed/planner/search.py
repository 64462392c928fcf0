"""All layouts of an instance with all ways to store the experts, priced and ranked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from omni_neuron.distributed.errors import LayoutError, divisors
from omni_neuron.distributed.layout import TEXT_ENCODER_GROUPS, ParallelLayout
from omni_neuron.distributed.placement import place, placements
from omni_neuron.distributed.planner.amounts import amounts
from omni_neuron.distributed.planner.candidate import Candidate, assess
from omni_neuron.distributed.planner.choice import Choice, WeightDtype
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.ledger import ledger
from omni_neuron.distributed.planner.seconds import constants, wire_seconds
from omni_neuron.distributed.topology import Topology

STORAGE: tuple[WeightDtype, ...] = ("bf16", "fp8")
# Mean absolute error of the calibration, as a share.
MODEL_ERROR = 0.04
# Pixels of a frame from which the published plugin decodes on 32 ranks in place of 16.
_LARGE_FRAME = 720 * 1280


def vae_ranks(job: Job, world: int) -> int:
    """Size of the VAE group as published, 16 or from 720p on 32, made to divide the world."""
    return math.gcd(32 if job.height * job.width >= _LARGE_FRAME else 16, world)


def search(job: Job, topology: Topology) -> list[Candidate]:
    """Every candidate, ranked. Layouts are all (tp, ulysses, ring, cfg) whose ranks divide the cores."""
    return ranked(
        [
            _candidate(job, layout, experts, dtype, topology)
            for layout in layouts(job, topology)
            for experts in range(job.model.experts, 0, -1)
            for dtype in STORAGE
        ]
    )


def ranked(candidates: list[Candidate]) -> list[Candidate]:
    """Accepted candidates by ``predicted_s``, then rejected ones by memory.

    Seconds that differ by less than the model's own error say nothing: of the candidates that close to the
    fastest, the one that moves fewest bytes comes first.
    """
    fastest = min((c.predicted_s for c in candidates if c.accepted and c.predicted_s), default=math.inf)
    limit = fastest * (1 + MODEL_ERROR)

    def key(candidate: Candidate) -> tuple[int, float, float]:
        seconds = candidate.predicted_s
        if not candidate.accepted or seconds is None:
            return 2, candidate.ledger.total, 0.0
        return (0, candidate.sent_bytes, seconds) if seconds <= limit else (1, seconds, candidate.sent_bytes)

    return sorted(candidates, key=key)


def check_divides(job: Job, layout: ParallelLayout) -> None:
    """Raise LayoutError for degrees that the model cannot be cut by.

    ``tp`` divides heads and widths, ``ulysses`` leaves each rank a head, guidance has a branch per group.
    """
    dit, name = job.model.dit, job.model.name
    cut = {"heads": dit.heads, "ffn": dit.ffn, "text encoder heads": job.model.text_encoder.heads}
    for what, size in cut.items():
        if size % layout.tp:
            allowed = [tp for tp in divisors(dit.heads) if not any(other % tp for other in cut.values())]
            near = min(allowed, key=lambda tp: abs(math.log2(tp / layout.tp)))
            raise LayoutError(
                f"tp={layout.tp} must divide {what}={size} of {name}: the nearest choice is tp={near}."
            )
    heads = dit.heads // layout.tp
    if layout.ulysses > heads:
        raise LayoutError(
            f"ulysses={layout.ulysses} must be at most the {heads} heads of a rank at tp={layout.tp}: "
            f"the nearest choice is ulysses={heads}, with the rest of cp as ring."
        )
    if layout.cfg > job.branches:
        raise LayoutError(
            f"cfg={layout.cfg} must be at most {job.branches}, one group per guidance branch: "
            f"the nearest choice is cfg={job.branches}."
        )


def best_placement(job: Job, layout: ParallelLayout, topology: Topology) -> ParallelLayout:
    """The layout on the fastest placement that routes, what a ring might hide counted in full.

    The placement that ``place`` gives competes with all others. Raises LayoutError when none routes.
    """
    placed = place(layout, topology)
    choices = [placed]
    if topology.torus_rule:
        choices += [layout.with_placement(order) for order in placements(layout, topology)]

    def waits(placed: ParallelLayout) -> float:
        need = amounts(job, Choice(placed), topology)
        return sum(wire_seconds(wire, fitted) for wire in (*need.wires.values(), need.ring))

    fitted = constants()
    return min(choices, key=lambda placed: round(waits(placed), 3))


def with_text_encoder(job: Job, choice: Choice, topology: Topology) -> Choice:
    """The choice with the first text encoder group that divides its heads and lets the memory fit.

    Tensor-parallel ranks, then those of context parallelism too, then the world; where none fits, the widest
    that divides.
    """
    dividing = []
    for name in TEXT_ENCODER_GROUPS:
        candidate = replace(choice, layout=replace(choice.layout, text_encoder=name))
        if job.model.text_encoder.heads % candidate.text_encoder_ranks == 0:
            dividing.append(candidate)
            if ledger(job, candidate).total <= topology.hbm_gb_per_core:
                return candidate
    return dividing[-1] if dividing else choice


def layouts(job: Job, topology: Topology) -> Iterator[ParallelLayout]:
    """All degrees whose ranks divide the cores, each with its published VAE group."""
    for world in divisors(topology.cores):
        for cfg in range(1, job.branches + 1):
            for tp in divisors(world // cfg) if world % cfg == 0 else ():
                for ulysses in divisors(world // cfg // tp):
                    ring = world // cfg // tp // ulysses
                    yield ParallelLayout(
                        tp, ulysses * ring, cfg, ulysses=ulysses, ring=ring, vae=vae_ranks(job, world)
                    )


def _candidate(
    job: Job, layout: ParallelLayout, experts: int, dtype: WeightDtype, topology: Topology
) -> Candidate:
    placed, refusal = _placed(job, layout, topology)
    choice = with_text_encoder(job, Choice(placed, "ring", experts, dtype), topology)
    return assess(job, choice, topology, refusal)


@lru_cache(maxsize=1024)
def _placed(job: Job, layout: ParallelLayout, topology: Topology) -> tuple[ParallelLayout, str | None]:
    try:
        check_divides(job, layout)
        return best_placement(job, layout, topology), None
    except LayoutError as error:
        return layout, str(error)
