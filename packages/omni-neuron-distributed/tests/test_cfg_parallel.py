"""Guidance with a branch per rank has the bits of guidance on one rank."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.distributed.cfg_parallel import combine_guidance, gather_guidance, guided_prediction
from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.process_groups import new_parallel_group
from omni_neuron.distributed.simulation import simulate_groups, simulate_ranks
from omni_neuron.distributed.testing import run_ranks

DTYPES = (torch.float32, torch.bfloat16)
SCALE = 3.7
ONE = ParallelGroup.single("cfg")


def branches(dtype, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(1, 4, 3, 5, 5, generator=generator).to(dtype) for _ in range(2)]


def guided(rank):
    results = []
    for order in ((0, 1), (1, 0)):
        group = new_parallel_group("cfg", [order])
        for dtype in DTYPES:
            mine = branches(dtype)[group.rank_in_group]
            results.append(gather_guidance(mine, SCALE, group))
            results.extend(gather_guidance((mine, mine[:, :2]), torch.tensor(SCALE), group))
    return results


def test_bit_equal_on_both_ranks_in_either_list_order():
    expected = []
    for dtype in DTYPES:
        whole = combine_guidance(*branches(dtype), SCALE)
        expected += [whole, whole, whole[:, :2]]
    for results in run_ranks(2, guided):
        for result, reference in zip(results, expected * 2, strict=True):
            assert result.dtype == reference.dtype
            assert torch.equal(result, reference)


@given(
    scale=st.floats(-2, 12, width=32),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([*DTYPES, torch.float64]),
)
def test_combination_has_the_bits_of_the_formula_for_a_number_and_a_tensor(scale, seed, dtype):
    positive, negative = branches(dtype, seed)
    reference = negative + scale * (positive - negative)
    assert torch.equal(combine_guidance(positive, negative, scale), reference)
    assert torch.equal(combine_guidance(positive, negative, torch.tensor(scale)), reference)


def test_each_output_is_guided():
    positive, negative = (tuple(branches(torch.float32, seed)) for seed in (1, 2))
    first, second = combine_guidance(positive, negative, SCALE)
    assert torch.equal(first, combine_guidance(positive[0], negative[0], SCALE))
    assert torch.equal(second, combine_guidance(positive[1], negative[1], SCALE))
    with pytest.raises(ValueError, match="zip"):
        combine_guidance(positive, negative[:1], SCALE)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("scales", [(3.0, 4.0), (1.0, 4.0), (3.0, 1.0), (1.0, 0.0)])
def test_stages_guide_by_their_own_scale_on_one_rank_and_on_two(order, scales):
    """Two steps of a sampler, one per stage: the second starts from the first one's result."""

    def sample(group):
        log = []

        def predict(condition):
            name, shift = condition
            log.append(name)
            return torch.sin(latents * 3 + shift), latents + shift

        latents = branches(torch.float32)[0]
        for scale in scales:
            negative = ("negative", 0.5) if scale > 1 else None
            flow, other = guided_prediction(predict, ("positive", -0.25), negative, scale, group)
            latents = latents - 0.1 * flow + 0.01 * other
        return latents, log

    sequential, both = sample(ONE)
    assert both == [name for scale in scales for name in ("positive", "negative")[: 1 + (scale > 1)]]
    groups = simulate_groups(2, lambda: new_parallel_group("cfg", [order]))
    for group, (latents, log) in zip(groups, simulate_ranks(groups, sample), strict=True):
        assert torch.equal(latents, sequential)
        mine = ("positive", "negative")[group.rank_in_group]
        assert log == [mine if scale > 1 else "positive" for scale in scales]


def test_branches_without_a_rank_or_a_condition_are_refused():
    with pytest.raises(LayoutError, match="cfg group of size 1 cannot hold the two guidance branches"):
        gather_guidance(torch.zeros(2), SCALE, ONE)
    with pytest.raises(
        LayoutError, match=r"negative is None, but a guidance scale of 3\.7 needs that branch"
    ):
        guided_prediction(torch.tensor, 1.0, None, SCALE, ONE)
    groups = simulate_groups(3, lambda: new_parallel_group("cfg", [(0, 1, 2)]))
    for group in groups:
        with pytest.raises(LayoutError, match="cfg group of size 3 cannot hold"):
            guided_prediction(torch.tensor, 1.0, 2.0, SCALE, group)
