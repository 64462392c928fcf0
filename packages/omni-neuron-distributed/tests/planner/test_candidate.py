import pytest

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import place
from omni_neuron.distributed.planner.candidate import assess
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.job import make_job
from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.distributed.topology import instance

TRN2 = instance("trn2.48xlarge")
JOB = make_job(load_model("wan2.2-t2v-a14b"))
KEYS = [
    "tp",
    "cp",
    "ulysses",
    "ring",
    "cfg",
    "vae",
    "resident_experts",
    "weight_dtype",
    "text_encoder_group",
    "fits",
    "routable",
    "hbm_gb",
    "hbm_ledger",
    "collective_gb_per_rank",
    "predicted_s",
    "predicted_kernels_s",
    "reasons",
]


def candidate(tp, cp, cfg, refusal=None, **degrees):
    layout = ParallelLayout(tp, cp, cfg, vae=32, text_encoder="world", **degrees)
    return assess(JOB, Choice(layout if refusal else place(layout, TRN2), "gather", 2), TRN2, refusal)


def test_the_json_form():
    found = candidate(8, 4, 2).as_dict()
    assert list(found) == KEYS
    assert found["hbm_gb"] == pytest.approx(sum(found["hbm_ledger"].values()), abs=0.01)
    assert found["collective_gb_per_rank"] == pytest.approx(1861, abs=1)
    assert (found["fits"], found["routable"], found["reasons"]) == (True, True, [])


def test_what_does_not_fit_names_phase_size_and_largest_line():
    found = candidate(4, 8, 2)
    assert not found.accepted
    assert found.reasons == [
        "The denoise phase needs 24.5 of the 24 GB of a core, most of it weights with 14.0 GB."
    ]
    assert found.predicted_s is not None


def test_what_does_not_route_has_its_reason_and_no_seconds():
    found = candidate(8, 4, 2, refusal="No ring.").as_dict()
    assert (found["routable"], found["predicted_s"], found["predicted_kernels_s"]) == (False, None, None)
    assert found["reasons"] == ["No ring."]


def test_uneven_heads_are_said_and_counted():
    uneven = candidate(2, 16, 2, ulysses=8)
    even = candidate(2, 16, 2, ulysses=4)
    assert uneven.reasons[-1] == (
        "Uneven heads: the busiest rank has 3 of 20 heads where 2.5 would be even; counted in the time."
    )
    assert uneven.predicted_kernels_s > even.predicted_kernels_s + 0.15 * 46
