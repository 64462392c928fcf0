import pytest

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import place
from omni_neuron.distributed.planner.amounts import Wire, amounts
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.flops import forward_flops
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.distributed.topology import instance

TRN2 = instance("trn2.48xlarge")
A14B = load_model("wan2.2-t2v-a14b")
JOB = Job(A14B, 720, 1280, 81, 40)


def choice(tp, cp, cfg, **others):
    return Choice(place(ParallelLayout(tp, cp, cfg, vae=32, text_encoder="world"), TRN2), **others)


def test_work_of_a_request_is_that_of_its_forwards():
    need = amounts(JOB, choice(8, 4, 2), TRN2)
    assert need.linear + need.attention == pytest.approx(forward_flops(JOB).total * 80 / 64, rel=2e-3)
    one_group = amounts(JOB, choice(8, 8, 1), TRN2)
    assert one_group.attention == pytest.approx(need.attention)


def test_only_a_ring_of_exchanges_may_hide():
    gathered = amounts(JOB, choice(8, 4, 2, attention="gather"), TRN2)
    exchanged = amounts(JOB, choice(8, 4, 2, attention="ring"), TRN2)
    assert gathered.ring == Wire()
    assert exchanged.ring.messages == 40 * 40 * 2 * 3
    assert exchanged.ring_cover == 3 / 4
    assert exchanged.wires["denoise"].seconds < gathered.wires["denoise"].seconds


def test_wires_belong_to_their_phases():
    wires = amounts(JOB, choice(8, 4, 2), TRN2).wires
    assert wires["encode"].messages == 2 * 24 * 2 * 2 * 63
    assert wires["decode"].messages == 31


def test_fp8_adds_memory_traffic_and_no_swap():
    need = amounts(JOB, choice(8, 4, 2, resident_experts=2, weight_dtype="fp8"), TRN2)
    assert need.dequantise == pytest.approx(40 * 3 * 14.057e9 / 8, rel=1e-3)
    assert need.swap == 0


def test_one_resident_expert_is_exchanged_twice_per_request_at_the_published_rate_of_loading():
    need = amounts(JOB, choice(8, 4, 2, resident_experts=1), TRN2)
    assert need.swap == pytest.approx(2 * 64 * 3.984 / 13.3, rel=1e-3)
    single = Job(load_model("wan2.2-ti2v-5b"), 704, 1280, 121, 50)
    assert amounts(single, choice(8, 4, 2, resident_experts=1), TRN2).swap == 0


def test_an_image_is_encoded():
    job = Job(load_model("wan2.2-ti2v-5b"), 704, 1280, 121, 50, image=True)
    need = amounts(job, choice(4, 8, 2), TRN2)
    assert need.images == 1
    assert 0 < need.vae_encode < need.vae_decode / 100
