"""The roofline: what a launch could reach at best, and what the interpreter predicts that it reaches.

Model: Williams, Waterman and Patterson 2009. Arithmetic intensity is useful FLOPs over the bytes that the
kernel's DMAs write; at best a kernel computes at min(peak, intensity x bandwidth). A kernel without matrix
products is bound by its bytes alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from omni_neuron.kernels.interpreter import profiled
from omni_neuron.kernels.spec import Case, KernelSpec


@dataclass(frozen=True)
class Roofline:
    """One case. FLOPs, bytes, peak and bandwidth are sums over all cores that take part."""

    case: Case
    lnc: int
    makespan_s: float
    pe_utilisation: float
    bottleneck: str
    bottleneck_share: float
    dma_bytes: int
    peak_flops_per_s: float
    bandwidth_bytes_per_s: float

    @property
    def intensity(self) -> float:
        """Useful FLOPs for each byte moved."""
        return self.case.flops / self.dma_bytes

    @property
    def bound_flops_per_s(self) -> float:
        """min(peak, intensity x bandwidth); 0 for a kernel without matrix products."""
        return min(self.peak_flops_per_s, self.intensity * self.bandwidth_bytes_per_s)

    @property
    def bound_s(self) -> float:
        """The makespan at the bound."""
        return max(self.case.flops / self.peak_flops_per_s, self.dma_bytes / self.bandwidth_bytes_per_s)

    @property
    def reached(self) -> float:
        """Share of the bound that the prediction reaches."""
        return self.bound_s / self.makespan_s


def roofline(spec: KernelSpec, case: Case, lnc: int = 1, target: str = "trn2") -> tuple[Roofline, Any]:
    """The prediction for one case, and the interpreter's `Profile` that it was read from."""
    cost = profiled(spec, case, lnc, target)
    core, cores = cost.chip.core, len(cost.timelines)
    tensor = core.tensor
    peak = tensor.fp32_flops
    if case.dtype != torch.float32:  # as the interpreter counts utilisation: a bf16 column per cycle
        peak = 2 * tensor.rows * tensor.columns * tensor.clock_hz
    last = max(range(cores), key=lambda c: cost.timelines[c].makespan_s)
    found = Roofline(
        case=case,
        lnc=lnc,
        makespan_s=cost.makespan_s,
        pe_utilisation=cost.pe_utilisation if case.flops else 0.0,
        bottleneck=cost.bottleneck,
        bottleneck_share=cost.busy_share(cost.bottleneck, last),
        dma_bytes=cost.dma_bytes,
        peak_flops_per_s=peak * cores,
        bandwidth_bytes_per_s=core.dma.bytes_per_s * cores,
    )
    return found, cost
