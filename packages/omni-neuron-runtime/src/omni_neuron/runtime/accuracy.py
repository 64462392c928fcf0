"""Whether a device computes as well as its dtype allows: the three-way rule.

Three results of the same computation are compared: float32 on the CPU (`baseline`), the reduced dtype on the
CPU (`expected`) and on the device (`actual`). The device may err as the reduced dtype does, not differently.
Rule and limits are those of vllm-neuron's `assert_close_three_way`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

MIN_OVERLAP = 0.99
MAX_SPREAD = 1.0
MAX_WORST_RATIO = 5.0
MAX_NORM_RATIO = 3.0
BINS = 64


@dataclass(frozen=True)
class ThreeWay:
    """How the errors of `actual` compare with those of `expected`.

    Attributes:
        overlap: Bhattacharyya coefficient of the two distributions of errors, 1 when they are the same.
        spread: standard deviation of the actual errors over that of the expected ones.
        worst_ratio: largest actual error over the largest expected one.
        norm_ratio: L2 norm of the actual errors over that of the expected ones.
    """

    overlap: float
    spread: float
    worst_ratio: float
    norm_ratio: float

    @property
    def passes(self) -> bool:
        """The same distribution or a narrower one, without an outlier."""
        alike = self.overlap >= MIN_OVERLAP or self.spread <= MAX_SPREAD
        return alike and self.worst_ratio < MAX_WORST_RATIO and self.norm_ratio < MAX_NORM_RATIO


def compare_three_way(baseline: Tensor, expected: Tensor, actual: Tensor) -> ThreeWay:
    """Compare the errors of `actual` and `expected` against `baseline`, all of one shape, on the host.

    Raises:
        ValueError: the shapes differ, a value is not finite, or `expected` has no error to compare with.
    """
    if not baseline.shape == expected.shape == actual.shape:
        raise ValueError(
            f"shapes {tuple(baseline.shape)}, {tuple(expected.shape)} and {tuple(actual.shape)} "
            "must be equal: compare results of the same computation."
        )
    exact = baseline.double().flatten()
    allowed, found = (value.double().flatten() - exact for value in (expected, actual))
    if not bool(found.isfinite().all()):
        raise ValueError("actual holds a value that is not finite.")
    if not bool(allowed.any()):
        raise ValueError("expected equals baseline: it must come from the reduced dtype.")
    return ThreeWay(
        overlap=_overlap(allowed, found),
        spread=float(found.std(correction=0) / allowed.std(correction=0)),
        worst_ratio=float(found.abs().max() / allowed.abs().max()),
        norm_ratio=float(found.norm() / allowed.norm()),
    )


def assert_three_way(baseline: Tensor, expected: Tensor, actual: Tensor) -> None:
    """Raise AssertionError with the numbers unless the rule holds."""
    result = compare_three_way(baseline, expected, actual)
    if not result.passes:
        raise AssertionError(f"the device errs more than its dtype does: {result}")


def _overlap(first: Tensor, second: Tensor) -> float:
    """Bhattacharyya coefficient of two samples over common bins."""
    low = float(torch.minimum(first.min(), second.min()))
    high = float(torch.maximum(first.max(), second.max()))
    if low == high:
        return 1.0
    shares = [torch.histc(sample, BINS, low, high) / sample.numel() for sample in (first, second)]
    return float((shares[0] * shares[1]).sqrt().sum())
