"""One way to run a job: how the ranks share the work and what they keep resident."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omni_neuron.distributed.layout import ParallelLayout

WeightDtype = Literal["bf16", "fp8"]
Attention = Literal["gather", "ring"]


@dataclass(frozen=True)
class Choice:
    """A layout with what decides memory beside it.

    ``attention`` tells how K and V reach a rank when the layout's ring is longer than 1: by one all-gather,
    or by exchanges with a neighbour. ``weight_dtype`` is how the matrices of the experts are stored; fp8 is
    turned into bf16 before use.
    """

    layout: ParallelLayout
    attention: Attention = "ring"
    resident_experts: int = 1
    weight_dtype: WeightDtype = "bf16"

    @property
    def text_encoder_ranks(self) -> int:
        """Ranks that share the text encoder."""
        return len(self.layout.groups("text_encoder")[0])
