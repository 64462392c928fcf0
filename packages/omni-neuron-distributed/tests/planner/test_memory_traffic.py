import pytest

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.memory_traffic import QUERY_ROWS, memory_traffic
from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.distributed.planner.parameters import block_matrices

A14B = load_model("wan2.2-t2v-a14b")
JOB = Job(A14B, 720, 1280, 81, 40)


def test_one_token_reads_little_but_the_weights():
    tiny = Job(A14B, 16, 16, 1, 1)
    assert tiny.tokens == 1
    assert memory_traffic(tiny, Choice(ParallelLayout())).total == pytest.approx(28.577e9, rel=1e-2)


def test_fp8_weights_are_read_written_and_read_again():
    layout = ParallelLayout(2, 16, 2, ulysses=4, ring=4)
    bf16, fp8 = (memory_traffic(JOB, Choice(layout, weight_dtype=dtype)) for dtype in ("bf16", "fp8"))
    assert fp8.total - bf16.total == 40 * block_matrices(A14B.dit) / 2 * (1 + 2 + 2 - 2)
    assert (fp8.attention, fp8.elementwise) == (bf16.attention, bf16.elementwise)


def test_keys_and_values_pass_once_for_every_tile_of_queries():
    """At cp=1, tp=40 a rank has one head of 75,600 tokens and 128 values, K and V each."""
    attention = memory_traffic(JOB, Choice(ParallelLayout(40))).attention
    head = 75_600 * 128 * 2
    passes = -(-75_600 // QUERY_ROWS)
    assert attention == pytest.approx(40 * (2 * head + 2 * head * passes + 2 * head))


def test_hidden_tensors_shrink_with_context_and_only_in_part_with_tensor_parallelism():
    one, cp2, tp2 = (
        memory_traffic(JOB, Choice(layout)).elementwise
        for layout in (ParallelLayout(), ParallelLayout(cp=2), ParallelLayout(2))
    )
    assert cp2 == one / 2
    assert one / 2 < tp2 < one
