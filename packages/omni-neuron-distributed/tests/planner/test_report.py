import pytest

from omni_neuron.distributed.planner.job import make_job
from omni_neuron.distributed.planner.layout_option import parse_layout
from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.distributed.planner.plan import Plan, plan_all, plan_one
from omni_neuron.distributed.planner.report import report
from omni_neuron.distributed.topology import instance

JOB = make_job(load_model("wan2.2-ti2v-5b"))


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_all(JOB, instance("trn2.48xlarge"))


def test_the_table_is_ranked_and_cut(plan):
    rows = report(plan, 3).split("\n\n")[1].splitlines()
    assert rows[0].split()[:5] == ["tp", "ulysses", "ring", "cfg", "vae"]
    assert [row.split()[0] for row in rows[1:]] == ["1", "2", "3"]


def test_every_rejected_layout_has_a_line_with_its_reason(plan):
    text = report(plan, 3)
    rejected = {
        (layout.tp, layout.ulysses, layout.ring, layout.cfg)
        for layout in (candidate.choice.layout for candidate in plan.candidates if not candidate.accepted)
    }
    section = text[text.index("Rejected:") :].split("\n\n")[0].splitlines()[1:]
    assert len(section) == len(rejected)
    assert any("tp=16 must divide heads=24" in line for line in section)


def test_what_is_not_known_about_the_machine_is_said(plan):
    heading = report(plan, 1).split("\n\n")[0]
    assert heading.endswith(f"Caution: {plan.topology.caution}")
    assert "failed with groups that pass the rule" in heading


def test_both_assumptions_are_named(plan):
    text = report(plan, 1)
    assert "90% attention and 89% linear" in text
    assert "published s" in text
    assert "left out" in text


def test_the_chosen_groups_are_drawn(plan):
    assert report(plan, 1).split("\n\n")[-1].startswith("Groups of tp=")


def test_a_layout_that_does_not_route_is_reported_without_a_drawing():
    topology = instance("trn2.48xlarge")
    text = report(plan_one(JOB, parse_layout("tp=2,cp=3,cfg=2", JOB), topology), 10)
    assert "does not route" in text
    assert "Groups of" not in text
    assert "Rejected:" not in text
