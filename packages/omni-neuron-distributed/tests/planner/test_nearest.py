import pytest

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.job import make_job
from omni_neuron.distributed.planner.ledger import ledger
from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.distributed.planner.nearest import nearest_that_fits, refuse_when_nothing_fits
from omni_neuron.distributed.planner.search import search
from omni_neuron.distributed.topology import instance
from omni_neuron.runtime.errors import InputError

TRN2 = instance("trn2.48xlarge")
JOB = make_job(load_model("wan2.2-t2v-a14b"))


def test_next_to_the_published_failure_stands_the_published_remedy():
    choice = Choice(ParallelLayout(4, 8, 2, vae=32, text_encoder="world"), "gather", 2)
    near = nearest_that_fits(JOB, choice, TRN2)
    assert near is not None
    assert (near.layout.tp, near.layout.ulysses, near.layout.ring, near.layout.cfg) == (8, 1, 4, 2)
    assert (near.attention, near.resident_experts, near.weight_dtype) == ("gather", 2, "bf16")
    assert ledger(JOB, near).total <= 24


def test_there_may_be_none():
    choice = Choice(ParallelLayout(4), "gather", 2)
    assert nearest_that_fits(JOB, choice, instance("inf2.48xlarge")) is None


@pytest.mark.parametrize(
    ("name", "size", "needs", "remedy"),
    [
        (
            "inf2.48xlarge",
            (),
            r"16 GB of a core of inf2.* needs 19\.\d GB",
            "trn2.48xlarge or trn2-ultraserver or trn3",
        ),
        ("trn3", (4096, 4096, 401), r"36 GB of a core of trn3.* needs \d+\.\d GB", None),
    ],
)
def test_a_machine_too_small_is_refused_with_those_that_have_more(name, size, needs, remedy):
    job, small = make_job(load_model("wan2.2-t2v-a14b"), *size), instance(name)
    with pytest.raises(InputError, match=rf"must fit the {needs}: use a smaller size") as caught:
        refuse_when_nothing_fits(job, search(job, small), small)
    assert str(caught.value).endswith(f"a smaller size or {remedy}." if remedy else "a smaller size.")
