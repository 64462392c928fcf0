from dataclasses import asdict
from pathlib import Path

import pytest

from omni_neuron.distributed.planner.anatomy import anatomy
from omni_neuron.distributed.planner.calibration import fit, published_points, residual_table
from omni_neuron.distributed.planner.job import make_job
from omni_neuron.distributed.planner.layout_option import parse_layout
from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.distributed.planner.plan import plan_all, plan_one
from omni_neuron.distributed.planner.report import report
from omni_neuron.distributed.topology import instance

TRN2 = instance("trn2.48xlarge")
JOB = make_job(load_model("wan2.2-t2v-a14b"))
PAGE = Path(__file__).parents[4] / "docs" / "planner.md"


def tables(layout: str) -> dict[str, dict[str, list[str]]]:
    """The tables by the first word of their heading, each as rows of words by row name."""
    text = anatomy(JOB, plan_one(JOB, parse_layout(layout, JOB), TRN2).candidates[0], TRN2)
    found = {}
    for table in text.split("\n\n"):
        heading, *rows = table.splitlines()
        found[heading.split()[0]] = {row[:16].strip(): row[16:].split() for row in rows}
    return found


def test_parts_add_up_to_the_totals():
    text = anatomy(JOB, plan_one(JOB, parse_layout("tp=8,cp=4,cfg=2", JOB), TRN2).candidates[0], TRN2)
    seconds = [line.split() for line in text.split("\n\n")[1].splitlines()[1:]]
    for column in (1, 2):
        *parts, total = (float(row[column]) for row in seconds)
        assert sum(parts) == pytest.approx(total, abs=0.05)
    memory = [line.split() for line in text.split("\n\n")[2].splitlines()[1:]]
    for column in (-3, -2, -1):
        *parts, total = (float(row[column]) for row in memory)
        assert sum(parts) == pytest.approx(total, abs=0.06)


def test_a_ring_is_also_counted_in_full():
    seconds = tables("tp=8,ring=4,cfg=2")["Seconds"]
    assert "no hiding" in " ".join(seconds)
    assert "beside" in tables("tp=8,ring=4,cfg=2")["One"]["keys and values"]
    assert "no hiding" not in " ".join(tables("tp=8,cp=4,cfg=2")["Seconds"])


def test_what_does_not_route_has_only_its_memory():
    assert list(tables("tp=2,cp=3,cfg=2")) == ["GB"]


def test_the_documentation_shows_what_the_commands_print():
    page = PAGE.read_text()
    plan = plan_all(JOB, TRN2)
    assert anatomy(JOB, plan.candidates[0], TRN2) in page
    assert report(plan, 6).split("\n\n")[1] in page
    points = published_points()
    found = fit(points)
    constants = "\n".join(f"{name} = {value:.4g}" for name, value in asdict(found).items())
    assert f"{constants}\n{residual_table(points, found)}" in page


@pytest.mark.parametrize(
    ("row", "layout", "model", "size", "gigabytes"),
    [
        ("about 24.4 of 24, does not fit", "tp=4,cp=8,cfg=2", "wan2.2-t2v-a14b", (), "24.46"),
        ("the same at 480p: fits", "tp=4,cp=8,cfg=2", "wan2.2-t2v-a14b", (480, 832), "19.10"),
        ("tp=8 cp=4 cfg=2: fits", "tp=8,cp=4,cfg=2", "wan2.2-t2v-a14b", (), "21.03"),
        ("tp=4 cp=16 and tp=8 cp=8: fit", "tp=4,cp=16", "wan2.2-ti2v-5b", (), "6.5"),
        ("tp=4 cp=16 and tp=8 cp=8: fit", "tp=8,cp=8", "wan2.2-ti2v-5b", (), "5.5"),
    ],
)
def test_the_documentation_shows_the_ledgers_of_published_verdicts(row, layout, model, size, gigabytes):
    job = make_job(load_model(model), *size)
    total = plan_one(job, parse_layout(layout, job), TRN2).candidates[0].ledger.total
    assert gigabytes == f"{total:.{len(gigabytes.partition('.')[2])}f}"
    (line,) = (line for line in PAGE.read_text().splitlines() if f"{row} |" in line)
    assert gigabytes in line
