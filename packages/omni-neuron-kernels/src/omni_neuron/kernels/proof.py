"""Levels 0 and 1: the twin beside float64, and the kernel in the interpreter beside its twin."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from omni_neuron.kernels.interpreter import interpret
from omni_neuron.kernels.spec import KERNEL_BAR, Case, KernelSpec, Results


@dataclass(frozen=True)
class Proof:
    """Relative L2 errors of one case, the worst of all ranks and results, and what they may be."""

    case: Case
    twin_error: float
    twin_bar: float
    kernel_error: float
    kernel_bar: float

    @property
    def holds(self) -> bool:
        return self.twin_error <= self.twin_bar and self.kernel_error <= self.kernel_bar


def prove(spec: KernelSpec, case: Case, lnc: int = 1, target: str = "trn2") -> Proof:
    """Run oracle, twin and kernel of one case. Raises what the interpreter raises for a broken kernel."""
    twin = spec.twin(case.ranks)
    found = interpret(spec, case.ranks, lnc, target)
    return Proof(
        case,
        worst_error(twin, spec.oracle(case.ranks)),
        spec.twin_bar(case.dtype),
        worst_error(found, twin) if _dtypes(found) == _dtypes(twin) else math.inf,
        KERNEL_BAR[case.dtype],
    )


def _dtypes(results: Sequence[Results]) -> list[list[torch.dtype]]:
    """A result that was never rounded is within the bar of one rounding, and wrong all the same."""
    return [[value.dtype for value in rank] for rank in results]


def relative_l2(found: Tensor, expected: Tensor) -> float:
    """|found - expected| / |expected|, in float64; infinite where one of them is not finite."""
    if found.shape != expected.shape:
        raise ValueError(f"shapes {tuple(found.shape)} and {tuple(expected.shape)} must be equal.")
    if not bool(found.isfinite().all() and expected.isfinite().all()):
        return float("inf")
    size = float(expected.double().norm())
    distance = float((found.double() - expected.double()).norm())
    return distance / size if size else (0.0 if distance == 0 else float("inf"))


def worst_error(found: Sequence[Results], expected: Sequence[Results]) -> float:
    """The largest relative L2 over all ranks and results."""
    return max(
        relative_l2(f, e)
        for rank, other in zip(found, expected, strict=True)
        for f, e in zip(rank, other, strict=True)
    )
