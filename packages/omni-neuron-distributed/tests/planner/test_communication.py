"""Bytes against the published table of payloads, and against totals of the design."""

import pytest

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.communication import all_reduce, kv_bytes, share_of_others, traffic
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.model_files import load_model

A14B, TI2V = load_model("wan2.2-t2v-a14b"), load_model("wan2.2-ti2v-5b")
SMALL, LARGE = Job(A14B, 480, 832, 81, 1, branches=1), Job(A14B, 720, 1280, 81, 1, branches=1)


def sent(job, choice):
    return {item.name: item.sent for item in traffic(job, choice)}


@pytest.mark.parametrize(
    ("tp", "cp", "small", "large"),
    [(2, 1, 40.3, 92.9), (8, 1, 40.3, 92.9), (2, 2, 20.1, 46.4), (2, 4, 10.1, 23.2), (4, 2, 20.1, 46.4)],
)
def test_tensor_parallel_sums_per_forward(tp, cp, small, large):
    choice = Choice(ParallelLayout(tp, cp))
    for job, payload in ((SMALL, small), (LARGE, large)):
        expected = 2 * (tp - 1) / tp * payload
        assert sent(job, choice)["tp sums"] * 1e-9 == pytest.approx(expected, rel=6e-3)


@pytest.mark.parametrize(
    ("tp", "cp", "small", "large"),
    [(1, 4, 13.4, 31.0), (1, 8, 6.7, 15.5), (2, 2, 13.4, 31.0), (2, 4, 6.7, 15.5), (4, 2, 6.7, 15.5)],
)
def test_ulysses_exchanges_per_forward(tp, cp, small, large):
    choice = Choice(ParallelLayout(tp, cp, ulysses=cp))
    for job, payload in ((SMALL, small), (LARGE, large)):
        expected = (cp - 1) / cp * payload
        assert sent(job, choice)["heads"] * 1e-9 == pytest.approx(expected, rel=6e-3)


def test_norms_are_four_small_fp32_sums_per_block():
    assert sent(LARGE, Choice(ParallelLayout(2)))["tp norms"] == 40 * 4 * 75_600 * 4


def test_keys_and_values_cost_the_same_bytes_gathered_or_exchanged():
    layout = ParallelLayout(4, 8, 2)
    gathered, exchanged = (sent(LARGE, Choice(layout, way)) for way in ("gather", "ring"))
    assert gathered == exchanged
    assert gathered["keys and values"] * 1e-9 == pytest.approx(40 * 1.548 * 7 / 8 / 4, rel=1e-3)


def test_only_exchanges_hide():
    layout = ParallelLayout(4, 8, 2)
    assert not any(item.hides for item in traffic(LARGE, Choice(layout, "gather")))
    assert [item.name for item in traffic(LARGE, Choice(layout, "ring")) if item.hides] == ["keys and values"]


def test_the_published_layout_sends_1_86_terabytes():
    job = Job(A14B, 720, 1280, 81, 40)
    total = sum(item.sent for item in traffic(job, Choice(ParallelLayout(8, 4, 2), "gather")))
    assert total * 1e-12 == pytest.approx(1.86, abs=0.005)


def test_guidance_gathers_4_2_megabytes_per_step_at_480p():
    assert sent(Job(A14B, 480, 832, 81, 1), Choice(ParallelLayout(cfg=2)))[
        "guidance"
    ] * 1e-6 == pytest.approx(4.2, abs=0.01)


def test_without_a_guidance_group_both_branches_pass_through_the_same_ranks():
    one = sent(Job(A14B, 480, 832, 81, 1, branches=1), Choice(ParallelLayout(2, 2)))
    two = sent(Job(A14B, 480, 832, 81, 1, branches=2), Choice(ParallelLayout(2, 2)))
    assert two["tp sums"] == 2 * one["tp sums"]


def test_one_rank_sends_nothing():
    assert traffic(LARGE, Choice(ParallelLayout())) == []


def test_uneven_heads_send_what_the_busiest_rank_exchanges():
    even = sent(LARGE, Choice(ParallelLayout(2, 10, ulysses=10)))["heads"]
    assert even == pytest.approx(40 * 4 * 9 / 10 * 7_560 * 5120 * 2 / 2)
    uneven = sent(LARGE, Choice(ParallelLayout(2, 8, ulysses=8)))["heads"]
    assert uneven == pytest.approx(40 * 4 * 7 / 8 * 9_450 * 5120 * 2 / 2 * (3 / 2.5))


def test_lengths_that_nothing_divides_are_padded():
    job = Job(TI2V, 480, 832, 121, 1)
    assert job.tokens % 8
    assert kv_bytes(job, Choice(ParallelLayout(cp=8))) == 2 * 1512 * 3072 * 2


@pytest.mark.parametrize(
    ("ranks", "reduce", "gather"), [(1, 0, 0), (2, 100, 50), (4, 150, 75), (8, 175, 87.5)]
)
def test_bytes_sent_per_rank(ranks, reduce, gather):
    assert all_reduce(100, ranks) == reduce
    assert share_of_others(100, ranks) == gather


def test_messages_are_the_steps_of_the_algorithms():
    choice = Choice(ParallelLayout(4, 8, ulysses=2, ring=4))
    messages = {item.name: item.messages for item in traffic(LARGE, choice)}
    assert messages["tp sums"] == 40 * 3 * 6
    assert messages["heads"] == 40 * 4 * 1
    assert messages["keys and values"] == 40 * 2 * 3
