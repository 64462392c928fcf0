"""A plan as text: the ranked table, why the rest was rejected, calibration, and the groups on the chips."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omni_neuron.distributed.planner.anatomy import anatomy
from omni_neuron.distributed.planner.calibration import published_points, residual_table
from omni_neuron.distributed.planner.candidate import Candidate
from omni_neuron.distributed.planner.drawing import draw_text
from omni_neuron.distributed.planner.plan import Plan
from omni_neuron.distributed.planner.seconds import constants, kernels

_COLUMNS = {
    "": 4,
    "tp": 4,
    "ulysses": 8,
    "ring": 5,
    "cfg": 4,
    "vae": 4,
    "experts": 8,
    "weights": 8,
    "text enc.": 10,
    "GB": 6,
    "fits": 5,
    "routes": 7,
    "TB sent": 8,
    "published s": 12,
    "kernels s": 10,
}


def report(plan: Plan, top: int) -> str:
    """The whole text for people; ``top`` limits the rows of the table."""
    chosen = plan.candidates[0]
    parts = [_heading(plan), _table(plan.candidates[:top]), *_rejected(plan), _calibration()]
    parts.append(f"Row 1 in detail\n\n{anatomy(plan.job, chosen, plan.topology)}")
    if chosen.routable:
        parts.append(draw_text(chosen.choice.layout, plan.topology))
    return "\n\n".join(parts)


def _heading(plan: Plan) -> str:
    job, used = plan.job, kernels()
    return (
        f"{job.model.name} {job.width}x{job.height}x{job.num_frames}, {job.steps} steps on "
        f"{plan.topology.name}, {plan.topology.hbm_gb_per_core:g} GB per core\n"
        "published s: at the efficiency that published runs imply. kernels s: with "
        f"{used.attention:.0%} attention and {used.linear:.0%} linear layers of peak.\n"
        "Both are predictions; tensor parallel sums are counted in bf16.\n"
        "The engine runs rows with vae 1, 2 experts, bf16 and text enc. tp; the others wait for it."
        + (f"\nCaution: {plan.topology.caution}" if plan.topology.caution else "")
    )


def _table(candidates: list[Candidate]) -> str:
    lines = [_row(_COLUMNS)]
    for place, candidate in enumerate(candidates, start=1):
        layout, choice = candidate.choice.layout, candidate.choice
        degrees = (layout.tp, layout.ulysses, layout.ring, layout.cfg, layout.vae)
        storage = (choice.resident_experts, choice.weight_dtype, layout.text_encoder)
        verdicts = (f"{candidate.ledger.total:.1f}", _yes(candidate.fits), _yes(candidate.routable))
        price = (
            f"{candidate.sent_bytes / 1e12:.3f}",
            _seconds(candidate.predicted_s),
            _seconds(candidate.predicted_kernels_s),
        )
        lines.append(_row([place, *degrees, *storage, *verdicts, *price]))
        lines += [f"      {reason}" for reason in candidate.reasons]
    return "\n".join(lines)


def _row(values: Iterable[object]) -> str:
    return "".join(f"{value!s:>{width}}" for value, width in zip(values, _COLUMNS.values(), strict=True))


def _rejected(plan: Plan) -> Iterator[str]:
    """One line per layout of which candidates were rejected; empty for a plan of one layout."""
    by_layout: dict[str, list[Candidate]] = {}
    for candidate in plan.candidates:
        if not candidate.accepted:
            layout = candidate.choice.layout
            key = f"tp={layout.tp} ulysses={layout.ulysses} ring={layout.ring} cfg={layout.cfg}"
            by_layout.setdefault(key, []).append(candidate)
    if len(plan.candidates) > 1 and by_layout:
        yield "\n".join(["Rejected:", *(f"  {key}: {_why(group)}" for key, group in by_layout.items())])


def _why(group: list[Candidate]) -> str:
    refused = next((candidate for candidate in group if not candidate.routable), None)
    if refused is not None:
        return refused.reasons[0]
    sizes = ", ".join(
        f"{candidate.ledger.total:.1f} GB with {_experts(candidate)} in {candidate.choice.weight_dtype}"
        for candidate in group
    )
    return f"does not fit: {sizes}"


def _calibration() -> str:
    heading = "Published runs in seconds, the model, and the model fitted without the run:"
    return f"{heading}\n{residual_table(published_points(), constants())}"


def _experts(candidate: Candidate) -> str:
    count = candidate.choice.resident_experts
    return f"{count} expert" if count == 1 else f"{count} experts"


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
