"""The fit of the constants to published runs, and what is left over.

Seconds are linear in the reciprocals of efficiencies and rates, so that the fit is a linear least-squares
problem in relative errors; only how much of a ring stays exposed depends on the solution, and a few rounds
settle that. ``python -m omni_neuron.distributed.planner.calibration`` prints the constants and the residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import place_by_rule
from omni_neuron.distributed.planner.amounts import Amounts, amounts
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.data_files import read_table
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.machines import Machine, machine
from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.distributed.planner.seconds import (
    Constants,
    exposed_ring_seconds,
    published_seconds,
    wire_seconds,
)
from omni_neuron.distributed.topology import instance

_ROUNDS = 8
_START = Constants(0.4, 0.5, 5.0, 40.0, 2.0, 7.0)


@dataclass(frozen=True)
class Point:
    """One published figure with the amounts of the run behind it."""

    name: str
    published_s: float
    quantity: str
    amounts: Amounts


@dataclass(frozen=True)
class Residual:
    """Published and predicted seconds of a point; ``left_out_s`` with the constants fitted to all others."""

    name: str
    published_s: float
    predicted_s: float
    left_out_s: float


def published_points() -> list[Point]:
    """The points of the data file, each on the published placement of its layout."""
    return [_point(entry) for entry in read_table("published")["point"]]


def predict(point: Point, fitted: Constants) -> float:
    """Seconds of the quantity that was published."""
    seconds = published_seconds(point.amounts, _machine(), fitted)
    return float(getattr(seconds, point.quantity))


def fit(points: Sequence[Point]) -> Constants:
    """The constants that minimise the sum of squared relative errors."""
    import torch

    fitted = _START
    for _ in range(_ROUNDS):
        rows = [[value / point.published_s for value in _row(point, fitted)] for point in points]
        system = torch.tensor(rows, dtype=torch.float64)
        solution = torch.linalg.lstsq(system, torch.ones(len(points), 1, dtype=torch.float64)).solution
        fitted = _from_slopes([float(value) for value in solution.flatten()])
    return fitted


def residuals(points: Sequence[Point], fitted: Constants) -> list[Residual]:
    """Every point under the constants, and under constants that never saw it."""
    return [
        Residual(
            point.name,
            point.published_s,
            predict(point, fitted),
            predict(point, fit([*points[:index], *points[index + 1 :]])),
        )
        for index, point in enumerate(points)
    ]


def _row(point: Point, fitted: Constants) -> list[float]:
    """Factors of (1 / compute, 1 / link, message, 1 / vae, image, output) in the point's seconds."""
    need, core = point.amounts, _machine()
    attention = need.attention / core.flops_per_s / fitted.compute_efficiency
    ring = wire_seconds(need.ring, fitted)
    exposed = exposed_ring_seconds(need, fitted, attention) / ring if ring else 0.0
    wires = need.wires
    links = {phase: wire.seconds for phase, wire in wires.items()}
    messages = {phase: wire.messages * 1e-6 for phase, wire in wires.items()}
    peak = core.flops_per_s
    rows = {
        "encode": [
            need.prompt / peak,
            links["encode"],
            messages["encode"],
            need.vae_encode * 1e-12,
            need.images,
            0.0,
        ],
        "denoise": [
            (need.linear + need.attention) / peak,
            links["denoise"] + exposed * need.ring.seconds,
            messages["denoise"] + exposed * need.ring.messages * 1e-6,
            0.0,
            0.0,
            0.0,
        ],
        "decode": [0.0, links["decode"], messages["decode"], need.vae_decode * 1e-12, 0.0, 0.0],
        "output": [0.0, 0.0, 0.0, 0.0, 0.0, need.output_values * 1e-9],
    }
    chosen = rows.values() if point.quantity == "total" else [rows[point.quantity]]
    return [sum(column) for column in zip(*chosen, strict=True)]


def _from_slopes(slopes: Sequence[float]) -> Constants:
    compute, link, message, vae, image, output = slopes
    return Constants(1 / compute, 1 / link, message, 1 / vae, image, output)


def _point(entry: dict[str, Any]) -> Point:
    model = load_model(entry.get("model", "wan2.2-ti2v-5b"))
    job = Job(
        model,
        entry.get("height", model.height),
        entry.get("width", model.width),
        entry.get("num_frames", model.num_frames),
        entry.get("steps", model.steps),
        entry.get("branches", 2),
        entry.get("image", False),
    )
    topology = instance("trn2.48xlarge")
    layout = ParallelLayout(
        entry["tp"], entry["cp"], entry.get("cfg", 1), vae=entry.get("vae", 16), text_encoder="world"
    )
    choice = Choice(place_by_rule(layout, topology), entry.get("attention", "gather"), model.experts)
    return Point(
        entry["name"],
        entry["published_s"],
        entry.get("quantity", "total"),
        amounts(job, choice, topology),
    )


def _machine() -> Machine:
    return machine(instance("trn2.48xlarge"))


def residual_table(points: Sequence[Point], fitted: Constants) -> str:
    """Residuals, leave-one-out predictions and their mean absolute errors as text."""
    lines = [f"{'published':>10} {'predicted':>10} {'error':>8} {'left out':>9} {'error':>8}"]
    errors, left_out = [], []
    for row in residuals(points, fitted):
        errors.append(row.predicted_s / row.published_s - 1)
        left_out.append(row.left_out_s / row.published_s - 1)
        lines.append(
            f"{row.published_s:10.2f} {row.predicted_s:10.2f} {errors[-1]:+8.1%} {row.left_out_s:9.2f} "
            f"{left_out[-1]:+8.1%}  {row.name}"
        )
    for name, values in (("mean absolute error", errors), ("mean absolute error left out", left_out)):
        lines.append(f"{name} {sum(map(abs, values)) / len(values):.1%}, worst {max(map(abs, values)):.1%}")
    return "\n".join(lines)


if __name__ == "__main__":
    found = fit(published_points())
    print("\n".join(f"{name} = {value:.4g}" for name, value in asdict(found).items()))
    print(residual_table(published_points(), found))
