"""A choice with its price: memory, bytes, seconds, and why it cannot run if it cannot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omni_neuron.distributed.planner.amounts import amounts
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.communication import traffic
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.ledger import Ledger, ledger
from omni_neuron.distributed.planner.machines import machine
from omni_neuron.distributed.planner.seconds import constants, kernel_seconds, kernels, published_seconds
from omni_neuron.distributed.topology import Topology


@dataclass(frozen=True)
class Candidate:
    """One row of a plan. Seconds are None where no placement routes, as nothing would run."""

    choice: Choice
    ledger: Ledger
    fits: bool
    routable: bool
    sent_bytes: float
    predicted_s: float | None
    predicted_kernels_s: float | None
    reasons: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        return self.fits and self.routable

    def as_dict(self) -> dict[str, Any]:
        """The form of the JSON output; GB are 2^30 bytes in memory, 10^9 on the wire."""
        choice, layout = self.choice, self.choice.layout
        return {
            "tp": layout.tp,
            "cp": layout.cp,
            "ulysses": layout.ulysses,
            "ring": layout.ring,
            "cfg": layout.cfg,
            "vae": layout.vae,
            "resident_experts": choice.resident_experts,
            "weight_dtype": choice.weight_dtype,
            "text_encoder_group": layout.text_encoder,
            "fits": self.fits,
            "routable": self.routable,
            "hbm_gb": round(self.ledger.total, 3),
            "hbm_ledger": {name: round(value, 3) for name, value in self.ledger.lines.items()},
            "collective_gb_per_rank": round(self.sent_bytes / 1e9, 3),
            "predicted_s": _rounded(self.predicted_s),
            "predicted_kernels_s": _rounded(self.predicted_kernels_s),
            "reasons": self.reasons,
        }


def assess(job: Job, choice: Choice, topology: Topology, refusal: str | None = None) -> Candidate:
    """Price a choice whose layout carries its placement, or has none for the reason ``refusal``."""
    book = ledger(job, choice)
    reasons = [] if refusal is None else [refusal]
    fits = book.total <= topology.hbm_gb_per_core
    if not fits:
        largest = max(book.lines, key=lambda line: book.lines[line])
        reasons.append(
            f"The {book.peak_phase} phase needs {book.total:.1f} of the {topology.hbm_gb_per_core:g} GB of a "
            f"core, most of it {largest} with {book.lines[largest]:.1f} GB."
        )
    published = kernel = None
    if refusal is None:
        reasons += _uneven_heads(job, choice)
        need, core, fitted = amounts(job, choice, topology), machine(topology), constants()
        published = published_seconds(need, core, fitted).total
        kernel = kernel_seconds(need, core, fitted, kernels()).total
    sent = sum(item.sent for item in traffic(job, choice))
    return Candidate(choice, book, fits, refusal is None, sent, published, kernel, reasons)


def _uneven_heads(job: Job, choice: Choice) -> list[str]:
    layout = choice.layout
    heads = job.model.dit.heads // layout.tp
    if heads % layout.ulysses == 0:
        return []
    most = -(-heads // layout.ulysses)
    return [
        f"Uneven heads: the busiest rank has {most} of {heads} heads where "
        f"{heads / layout.ulysses:.3g} would be even; counted in the time."
    ]


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
