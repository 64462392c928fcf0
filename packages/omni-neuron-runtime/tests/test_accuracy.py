import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.runtime.accuracy import assert_three_way, compare_three_way
from omni_neuron.runtime.testing import run_on_device


def _samples(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    baseline = torch.randn(4000, generator=generator)
    return baseline, baseline.to(torch.bfloat16).float()


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**16))
def test_another_order_of_the_same_roundings_passes(seed: int) -> None:
    baseline, expected = _samples(seed)
    noise = (expected - baseline)[torch.randperm(4000, generator=torch.Generator().manual_seed(seed))]
    assert_three_way(baseline, expected, baseline + noise)


def test_an_exact_device_passes() -> None:
    baseline, expected = _samples()
    assert_three_way(baseline, expected, baseline)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda error: error * 4,  # a second, coarser rounding
        lambda error: torch.cat([error[:-1], error.new_tensor([0.2])]),  # one lost row
        lambda error: error + error.std() * 3,  # a shift of everything
    ],
)
def test_another_kind_of_error_fails(spoil) -> None:
    baseline, expected = _samples()
    with pytest.raises(AssertionError, match="errs more"):
        assert_three_way(baseline, expected, baseline + spoil(expected - baseline))


def test_the_numbers_of_equal_errors() -> None:
    baseline, expected = _samples()
    result = compare_three_way(baseline, expected, expected)
    assert result.overlap == pytest.approx(1.0)
    assert (result.spread, result.worst_ratio, result.norm_ratio) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("expected", "actual", "message"),
    [
        (torch.ones(3), torch.ones(4), "must be equal"),
        (torch.ones(3), torch.ones(3), "reduced dtype"),
        (torch.zeros(3), torch.tensor([1.0, float("nan"), 1.0]), "not finite"),
    ],
)
def test_what_cannot_be_compared(expected: torch.Tensor, actual: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_three_way(torch.ones(3), expected, actual)


@pytest.mark.hardware
def test_a_product_on_the_device_errs_as_its_dtype_does() -> None:
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(96, 96, generator=generator).bfloat16() for _ in range(2))
    expected = left @ right
    assert_three_way(left.float() @ right.float(), expected, run_on_device(torch.matmul, left, right))
