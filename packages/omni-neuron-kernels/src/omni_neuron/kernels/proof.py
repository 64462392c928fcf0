"""Levels 0 and 1: the twin beside float64, and the kernel in the interpreter beside its twin."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from omni_neuron.kernels.operator import load
from omni_neuron.kernels.spec import KERNEL_BAR, Arguments, Case, KernelSpec, Results, as_results
from omni_neuron.runtime import envs
from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.runtime.errors import SetupError


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


def interpret(
    spec: KernelSpec, ranks: Sequence[Arguments], lnc: int = 1, target: str = "trn2"
) -> list[Results]:
    """The kernel's results in the interpreter, one tuple for each rank."""
    run = simulator().simulate
    found = run(load(spec.source), *per_rank(ranks), lnc=lnc, ranks=len(ranks), target=target)
    return [as_results(value) for value in (found if len(ranks) > 1 else [found])]


def profiled(spec: KernelSpec, case: Case, lnc: int = 1, target: str = "trn2") -> Any:
    """The interpreter's prediction of what the case costs: its `Profile`."""
    run = simulator().profile
    kernel = load(spec.source)
    flops = case.flops or None
    return run(
        kernel, *per_rank(case.ranks), lnc=lnc, ranks=len(case.ranks), target=target, useful_flops=flops
    )


def simulator() -> Any:
    """The interpreter's launches. SetupError where none is installed, or where devices run the kernels."""
    found = getattr(get_adapter().nki(), "simulator", None)
    if not hasattr(found, "profile"):
        raise SetupError(
            f"This process compiles kernels for Neuron devices, and proofs need the interpreter: install "
            f"omni-neuron-sim and set {envs.cpu_mode.name}=1."
        )
    return found


def per_rank(ranks: Sequence[Arguments]) -> tuple[Any, ...]:
    """Arguments of a launch: those of the one rank, or for each position the values of all ranks."""
    if len(ranks) == 1:
        return ranks[0]
    gather = simulator().PerRank
    return tuple(gather(values) for values in zip(*ranks, strict=True))


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
