"""The output projection in the catalogue."""

import torch
from torch import Tensor

from omni_neuron.kernels.dtypes import dtype_name
from omni_neuron.kernels.output_projection.operator import SOURCE
from omni_neuron.kernels.output_projection.twin import output_projection_twin
from omni_neuron.kernels.spec import Arguments, Case, KernelSpec, counted, each_rank


def output_projection_oracle(
    attention: Tensor, weight: Tensor, bias: Tensor | None, fp32_result: bool
) -> Tensor:
    product = attention.double().flatten(0, 1).T @ weight.double()
    return product if bias is None else product + bias.double()


def arguments(
    heads: int,
    dim: int,
    tokens: int,
    width: int,
    dtype: torch.dtype = torch.bfloat16,
    bias: bool = True,
    fp32_result: bool = False,
) -> Arguments:
    """Those of the kernel; `bias` says whether there is one."""
    generator = torch.Generator().manual_seed(tokens)
    inner = heads * dim
    attention = torch.randn(heads, dim, tokens, generator=generator).to(dtype)
    weight = (torch.randn(inner, width, generator=generator) / inner**0.5).to(dtype)
    added = torch.randn(width, generator=generator).to(dtype) if bias else None
    return attention, weight, added, fp32_result


def case(
    heads: int,
    dim: int,
    tokens: int,
    width: int,
    dtype: torch.dtype = torch.bfloat16,
    bias: bool = True,
    fp32_result: bool = False,
) -> Case:
    """A product of heads of `dim` channels with a weight of `width` columns."""
    title = f"{counted(tokens, 'token')}, {counted(heads, 'head')} x {dim}, H={width}, {dtype_name(dtype)}"
    title += "" if bias else ", no bias"
    title += ", fp32 partial sums" if fp32_result and dtype != torch.float32 else ""
    given = arguments(heads, dim, tokens, width, dtype, bias, fp32_result)
    return Case(title, (given,), 2 * tokens * heads * dim * width)


OUTPUT_PROJECTION = KernelSpec(
    name="output_projection",
    summary="Attention output times its weight plus bias, rounded or as fp32 partial sums",
    source=SOURCE,
    limits=(
        "D up to 128",
        "128 tokens of all heads fit SBUF twice",
        "at H = 5,120 these are heads x D up to 43,000 in bf16 and 20,000 in fp32",
        "attention, weight and bias of one dtype, bf16 or fp32",
    ),
    roundings=("output",),
    twin=each_rank(output_projection_twin),
    oracle=each_rank(output_projection_oracle),
    cases=lambda: (
        case(10, 128, 520, 5120),
        case(5, 128, 300, 5120, bias=False, fp32_result=True),
        case(6, 128, 1100, 3072, bias=False),
        case(40, 128, 130, 1536),
        case(3, 40, 131, 200, fp32_result=True),
        case(1, 64, 1, 896),
        case(3, 96, 260, 700, torch.float32),
    ),
    roofline=lambda: (
        case(10, 128, 4096, 5120),
        case(5, 128, 4096, 5120, bias=False, fp32_result=True),
    ),
)
