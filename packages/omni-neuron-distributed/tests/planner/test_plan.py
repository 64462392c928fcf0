"""Plans against published verdicts, and the layout that this package proposes for the published job."""

import pytest

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.job import make_job
from omni_neuron.distributed.planner.layout_option import parse_layout
from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.distributed.planner.plan import plan_all, plan_one
from omni_neuron.distributed.topology import instance
from omni_neuron.runtime.errors import InputError

TRN2 = instance("trn2.48xlarge")


def one(layout, model="wan2.2-t2v-a14b", *sizes):
    job = make_job(load_model(model), *sizes)
    return plan_one(job, parse_layout(layout, job), TRN2).as_dict()["candidates"]


@pytest.mark.parametrize(
    ("layout", "model", "sizes", "fits"),
    [
        ("tp=4,cp=8,cfg=2", "wan2.2-t2v-a14b", (), False),
        ("tp=4,cp=8,cfg=2", "wan2.2-t2v-a14b", (480, 832), True),
        ("tp=8,cp=4,cfg=2", "wan2.2-t2v-a14b", (), True),
        ("tp=4,cp=16", "wan2.2-ti2v-5b", (), True),
        ("tp=8,cp=8", "wan2.2-ti2v-5b", (), True),
    ],
)
def test_published_verdicts(layout, model, sizes, fits):
    (candidate,) = one(layout, model, *sizes)
    assert (candidate["fits"], candidate["routable"]) == (fits, True)


def test_what_does_not_fit_comes_with_the_nearest_that_does():
    (candidate,) = one("tp=4,cp=8,cfg=2")
    assert candidate["hbm_gb"] == pytest.approx(24.4, abs=0.5)
    assert candidate["reasons"][-1] == "The nearest layout that fits is tp=8 x cp=4 x cfg=2, vae=32."


def test_the_proposed_layout_against_the_published_one():
    (ours,) = one("tp=2,ulysses=4,ring=4,cfg=2,weight_dtype=fp8,text_encoder_group=tp_cp")
    (published,) = one("tp=8,cp=4,cfg=2")
    assert ours["fits"]
    assert ours["routable"]
    assert ours["collective_gb_per_rank"] <= 600
    assert ours["predicted_s"] < min(published["predicted_s"], 157.8)
    assert ours["predicted_kernels_s"] < published["predicted_kernels_s"]
    assert ours["predicted_kernels_s"] <= 82


def test_what_does_not_route_says_which_group():
    (candidate,) = one("tp=2,cp=3,cfg=2")
    assert not candidate["routable"]
    assert "the ring group [0, 2, 4] cannot be built" in candidate["reasons"][0]


def test_more_ranks_than_cores_are_refused():
    with pytest.raises(LayoutError, match="128 ranks exceed the 64 cores"):
        one("tp=8,cp=8,cfg=2")


def test_a_cpu_cannot_be_planned_for():
    job = make_job(load_model("wan2.1-t2v-1.3b"))
    for call in (
        lambda: plan_all(job, instance("cpu")),
        lambda: plan_one(job, Choice(ParallelLayout()), instance("cpu")),
    ):
        with pytest.raises(InputError, match="instance='cpu'"):
            call()


def test_top_cuts_the_candidates_and_not_the_calibration():
    plan = plan_all(make_job(load_model("wan2.1-t2v-1.3b")), instance("trn1.32xlarge"))
    whole, cut = plan.as_dict(), plan.as_dict(3)
    assert list(cut) == ["candidates", "calibration"]
    assert cut["candidates"] == whole["candidates"][:3]
    assert cut["calibration"] == whole["calibration"]
    assert set(whole["calibration"][0]) == {"name", "published_s", "predicted_s"}
