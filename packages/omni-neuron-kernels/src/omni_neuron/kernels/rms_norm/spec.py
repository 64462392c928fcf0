"""RMSNorm in the catalogue."""

import torch
from torch import Tensor

from omni_neuron.kernels.dtypes import dtype_name
from omni_neuron.kernels.rms_norm.operator import MAX_WIDTH, SOURCE
from omni_neuron.kernels.rms_norm.twin import rms_norm_twin
from omni_neuron.kernels.spec import Arguments, Case, KernelSpec, counted, each_rank

EPS = 1e-6


def rms_norm_oracle(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.double()
    return wide / (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight.double()


def arguments(shape: tuple[int, ...], dtype: torch.dtype = torch.bfloat16) -> Arguments:
    """x of a shape, a weight near 1, and eps."""
    generator = torch.Generator().manual_seed(sum(shape))
    x = torch.randn(shape, generator=generator)
    weight = 1 + 0.3 * torch.randn(shape[-1], generator=generator)
    return x.to(dtype), weight.to(dtype), EPS


def case(tokens: int, width: int, dtype: torch.dtype = torch.bfloat16) -> Case:
    """Rows of one width."""
    title = f"{counted(tokens, 'token')}, H={width}, {dtype_name(dtype)}"
    return Case(title, (arguments((tokens, width), dtype),))


RMS_NORM = KernelSpec(
    name="rms_norm",
    summary="RMSNorm over the last dimension",
    source=SOURCE,
    limits=(f"H up to {MAX_WIDTH:,}", "x and weight of one dtype, bf16 or fp32"),
    roundings=("output",),
    twin=each_rank(rms_norm_twin),
    oracle=each_rank(rms_norm_oracle),
    cases=lambda: (case(300, 1280), case(257, 5120), case(1, 64), case(130, 96, torch.float32)),
    roofline=lambda: (case(4096, 5120),),
)
