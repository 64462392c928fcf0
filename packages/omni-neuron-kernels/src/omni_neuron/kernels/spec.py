"""What is known about a kernel: where its source is, what it rounds, and what it is compared with."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Arguments = tuple[Any, ...]
Results = tuple[Tensor, ...]

# A rounding to bfloat16 has a relative L2 of 1.66e-3, independent ones add as squares; 15 % to spare.
BF16_ROUNDING = 1.66e-3
TWIN_BAR = {torch.bfloat16: 1.15 * BF16_ROUNDING, torch.float32: 1e-6}
KERNEL_BAR = {torch.bfloat16: 1.7e-3, torch.float32: 1e-6}


@dataclass(frozen=True)
class Case:
    """Arguments of one launch, and what it is good for.

    Attributes:
        title: what is special about it, such as `S=1000, d=128, ragged`.
        ranks: the kernel's positional arguments, once for each rank.
        flops: useful floating-point operations of all ranks together; 0 where the kernel has no matmul.
    """

    title: str
    ranks: tuple[Arguments, ...]
    flops: int = 0

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the first tensor among the arguments."""
        return next(a.dtype for a in self.ranks[0] if isinstance(a, Tensor))


@dataclass(frozen=True)
class KernelSpec:
    """One kernel.

    Attributes:
        name: of the kernel and of its operator.
        summary: one line.
        source: `module:function` of the NKI source, imported when it runs.
        limits: what its shape gate asks for, one sentence each.
        roundings: the points where values are rounded to the dtype of the arguments, one name each.
        twin: the same arithmetic and the same roundings in torch: arguments of all ranks to results of all
            ranks.
        oracle: the mathematics in float64, with the signature of `twin`.
        cases: what it is proven on; small enough for an interpreter.
        roofline: what its cost is predicted for.
    """

    name: str
    summary: str
    source: str
    limits: tuple[str, ...]
    roundings: tuple[str, ...]
    twin: Callable[[Sequence[Arguments]], list[Results]]
    oracle: Callable[[Sequence[Arguments]], list[Results]]
    cases: Callable[[], tuple[Case, ...]]
    roofline: Callable[[], tuple[Case, ...]]

    def twin_bar(self, dtype: torch.dtype) -> float:
        """Largest relative L2 between twin and float64 that the roundings explain."""
        growth = math.sqrt(len(self.roundings)) if dtype == torch.bfloat16 else 1.0
        return TWIN_BAR[dtype] * growth


def each_rank(function: Callable[..., Any]) -> Callable[[Sequence[Arguments]], list[Results]]:
    """A function of one rank's arguments, applied to every rank."""

    def apply(ranks: Sequence[Arguments]) -> list[Results]:
        return [as_results(function(*arguments)) for arguments in ranks]

    return apply


def counted(number: int, noun: str) -> str:
    """`1 frame`, `2 frames`: for titles of cases."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def as_results(value: Any) -> Results:
    """What a kernel returned, as a tuple of tensors."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
