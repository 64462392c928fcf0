"""RMSNorm in the catalogue."""

import torch
from torch import Tensor

from omni_neuron.kernels.rms_norm.operator import MAX_WIDTH, SOURCE
from omni_neuron.kernels.rms_norm.twin import rms_norm_twin
from omni_neuron.kernels.spec import Arguments, Case, KernelSpec, each_rank

EPS = 1e-6


def rms_norm_oracle(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.double()
    return wide / (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight.double()


def _arguments(tokens: int, width: int, dtype: torch.dtype) -> Arguments:
    generator = torch.Generator().manual_seed(tokens)
    x = torch.randn(tokens, width, generator=generator)
    weight = 1 + 0.3 * torch.randn(width, generator=generator)
    return x.to(dtype), weight.to(dtype), EPS


def _case(tokens: int, width: int, dtype: torch.dtype = torch.bfloat16) -> Case:
    return Case(
        f"{tokens} tokens, H={width}, {dtype}".replace("torch.", ""), (_arguments(tokens, width, dtype),)
    )


RMS_NORM = KernelSpec(
    name="rms_norm",
    summary="RMSNorm over the last dimension",
    source=SOURCE,
    limits=(f"H up to {MAX_WIDTH:,}", "x and weight of one dtype, bf16 or fp32"),
    roundings=("output",),
    twin=each_rank(rms_norm_twin),
    oracle=each_rank(rms_norm_oracle),
    cases=lambda: (_case(300, 1280), _case(257, 5120), _case(1, 64), _case(130, 96, torch.float32)),
    roofline=lambda: (_case(4096, 5120),),
)
