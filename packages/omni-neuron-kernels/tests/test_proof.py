"""A proof that cannot fail proves nothing: what makes one fail."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from omni_neuron.kernels.catalogue import KERNELS
from omni_neuron.kernels.proof import prove, relative_l2, worst_error
from omni_neuron.kernels.spec import Arguments, Results

SPEC = KERNELS["rms_norm"]
CASE = SPEC.cases()[2]  # one token, in bf16
NAN, INF = math.nan, math.inf


def changed(how: Callable[[Tensor], Tensor]) -> Callable[[Sequence[Arguments]], list[Results]]:
    """The twin, with its results changed."""
    return lambda ranks: [tuple(how(value) for value in results) for results in SPEC.twin(ranks)]


def test_a_right_kernel_holds() -> None:
    found = prove(SPEC, CASE)
    assert found.holds
    assert found.twin_bar == SPEC.twin_bar(torch.bfloat16) == 1.15 * 1.66e-3
    assert found.kernel_bar == 1.7e-3


def test_a_twin_unlike_float64_fails() -> None:
    found = prove(replace(SPEC, oracle=changed(lambda value: 1.003 * value.double())), CASE)
    assert found.twin_error > found.twin_bar
    assert not found.holds


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_result_of_another_dtype_fails(dtype: torch.dtype) -> None:
    """Not rounding is within the bar of a rounding."""
    found = prove(replace(SPEC, twin=changed(lambda value: value.to(dtype))), CASE)
    assert found.kernel_error == INF
    assert not found.holds


def test_four_roundings_double_the_bar() -> None:
    spec = replace(SPEC, roundings=("a", "b", "c", "d"))
    assert spec.twin_bar(torch.bfloat16) == 2 * SPEC.twin_bar(torch.bfloat16)
    assert spec.twin_bar(torch.float32) == 1e-6


@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [
        ([3.0, 4.0], [3.0, 4.0], 0.0),
        ([3.0, 5.0], [3.0, 4.0], 0.2),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([0.0, 1e-30], [0.0, 0.0], INF),
        ([NAN, 4.0], [3.0, 4.0], INF),
        ([3.0, 4.0], [NAN, 4.0], INF),
        ([NAN, 4.0], [NAN, 4.0], INF),
        ([3.0, INF], [3.0, INF], INF),
        ([], [], 0.0),
    ],
)
def test_relative_l2(found: list[float], expected: list[float], error: float) -> None:
    given = torch.tensor(found), torch.tensor(expected)
    assert relative_l2(*given) == error
    good = torch.ones(1)
    assert worst_error([(good,), (good, given[0])], [(good,), (good, given[1])]) == error


def test_other_shapes_are_no_error_of_a_size() -> None:
    with pytest.raises(ValueError, match="must be equal"):
        relative_l2(torch.zeros(2), torch.zeros(2, 1))
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        worst_error([(torch.ones(1),) * 2], [(torch.ones(1),)])
