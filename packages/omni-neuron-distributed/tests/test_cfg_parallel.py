"""Guidance with a branch per rank has the bits of guidance on one rank."""

import pytest
import torch
import torch.distributed as dist

from omni_neuron.distributed.cfg_parallel import combine_guidance, gather_guidance
from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.testing import run_ranks

DTYPES = (torch.float32, torch.bfloat16)
SCALE = 3.7


def branches(dtype):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(1, 4, 3, 5, 5, generator=generator).to(dtype) for _ in range(2)]


def guided(rank):
    results = []
    for ranks in ((0, 1), (1, 0)):
        group = ParallelGroup.from_process_group("cfg", ranks, dist.new_group(list(ranks)))
        mine = [branches(dtype)[group.rank_in_group] for dtype in DTYPES]
        results.extend(gather_guidance(prediction, SCALE, group) for prediction in mine)
    return results


def test_bit_equal_on_both_ranks_in_either_list_order():
    expected = [combine_guidance(*branches(dtype), SCALE) for dtype in DTYPES] * 2
    for results in run_ranks(2, guided):
        for result, reference in zip(results, expected, strict=True):
            assert result.dtype == reference.dtype
            assert torch.equal(result, reference)


def test_combination_is_computed_in_the_inputs_dtype():
    positive, negative = branches(torch.bfloat16)
    reference = negative + (SCALE * (positive - negative)).to(torch.bfloat16)
    assert torch.equal(combine_guidance(positive, negative, SCALE), reference)
    assert torch.equal(combine_guidance(positive, negative, 0.0), negative)


def test_one_rank_cannot_hold_two_branches():
    with pytest.raises(LayoutError, match="cfg group of size 1 cannot hold the two guidance branches"):
        gather_guidance(torch.zeros(2), SCALE, ParallelGroup.single("cfg"))
