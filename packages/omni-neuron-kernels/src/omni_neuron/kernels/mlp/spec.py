"""The MLP in the catalogue."""

import torch
from torch import Tensor
from torch.nn.functional import gelu

from omni_neuron.kernels.dtypes import dtype_name
from omni_neuron.kernels.mlp.operator import SOURCE
from omni_neuron.kernels.mlp.twin import mlp_twin
from omni_neuron.kernels.spec import Arguments, Case, KernelSpec, counted, each_rank


def mlp_oracle(
    x: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None, fp32_result: bool
) -> Tensor:
    inner = x.double() @ w1.double()
    inner = inner if b1 is None else inner + b1.double()
    result = gelu(inner, approximate="tanh") @ w2.double()
    return result if b2 is None else result + b2.double()


def arguments(
    tokens: int,
    hidden: int,
    inner: int,
    dtype: torch.dtype = torch.bfloat16,
    b1: bool = True,
    b2: bool = True,
    fp32_result: bool = False,
) -> Arguments:
    """Those of the kernel; b1 and b2 say whether there are biases."""
    generator = torch.Generator().manual_seed(tokens)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return (torch.randn(*shape, generator=generator) * scale).to(dtype)

    w1, w2 = normal(hidden, inner, scale=hidden**-0.5), normal(inner, hidden, scale=inner**-0.5)
    first = normal(inner, scale=0.3) if b1 else None
    second = normal(hidden, scale=0.3) if b2 else None
    return normal(tokens, hidden), w1, first, w2, second, fp32_result


def case(
    tokens: int,
    hidden: int,
    inner: int,
    dtype: torch.dtype = torch.bfloat16,
    b1: bool = True,
    b2: bool = True,
    fp32_result: bool = False,
) -> Case:
    """An MLP of `hidden` to `inner` channels and back."""
    title = f"{counted(tokens, 'token')}, H={hidden}, I={inner}, {dtype_name(dtype)}"
    title += "" if b1 else ", no first bias"
    title += "" if b2 else ", no second bias"
    title += ", fp32 partial sums" if fp32_result and dtype != torch.float32 else ""
    given = arguments(tokens, hidden, inner, dtype, b1, b2, fp32_result)
    return Case(title, (given,), 4 * tokens * hidden * inner)


MLP = KernelSpec(
    name="mlp",
    summary="MLP gelu(x W1 + b1) W2 + b2 for any number of tokens, rounded or as fp32 partial sums",
    source=SOURCE,
    limits=(
        "128 tokens of x and of the inner activation fit SBUF",
        "at H = 5,120 these are I up to 66,000 in bf16 and 23,000 in fp32",
        "x, weights and biases of one dtype, bf16 or fp32",
    ),
    roundings=("inner activation", "output"),
    twin=each_rank(mlp_twin),
    oracle=each_rank(mlp_oracle),
    cases=lambda: (
        case(131, 5120, 864),
        case(1, 5120, 432, b2=False, fp32_result=True),
        case(1155, 1024, 600),
        case(257, 3072, 896, b2=False, fp32_result=True),
        case(70, 200, 333),
        case(333, 192, 300, torch.float32),
    ),
    roofline=lambda: (
        case(4096, 5120, 3456),
        case(2048, 5120, 1728, b2=False, fp32_result=True),
    ),
)
