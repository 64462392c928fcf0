"""adaLN in the catalogue."""

import torch
from torch import Tensor

from omni_neuron.kernels.adaln.operator import MAX_WIDTH, SOURCE
from omni_neuron.kernels.adaln.twin import adaln_twin
from omni_neuron.kernels.dtypes import dtype_name
from omni_neuron.kernels.spec import Arguments, Case, KernelSpec, Results, counted, each_rank

EPS = 1e-6


def adaln_oracle(
    x: Tensor,
    update: Tensor | None,
    gate: Tensor | None,
    scale: Tensor,
    shift: Tensor,
    eps: float,
    unit_offset: bool,
) -> Results:
    scale, shift = (vector.double()[:, None] for vector in (scale, shift))
    total = x.double()
    if update is not None:
        total = total + (1.0 if gate is None else gate.double()[:, None]) * update.double()
    centred = total - total.mean(dim=-1, keepdim=True)
    deviation = (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    out = centred / deviation * (scale + 1 if unit_offset else scale) + shift
    return (out,) if update is None else (total, out)


def arguments(shape: tuple[int, int, int], dtype: torch.dtype, form: str, mean: float = 0.0) -> Arguments:
    """Those of the kernel for x `[B, S, H]` of a mean.

    `form` is `norm`, `sum` (of an update without a gate, then an affine norm) or `gated`.
    """
    batch, tokens, width = shape
    generator = torch.Generator().manual_seed(tokens + width)

    def normal(*size: int) -> Tensor:
        return torch.randn(size, generator=generator)

    x, update = (mean + normal(*shape)).to(dtype), normal(*shape).to(dtype)
    scale, shift, gate = 0.5 * normal(batch, width), normal(batch, width), normal(batch, width)
    if form == "norm":
        return x, None, None, scale, shift, EPS, True
    if form == "sum":
        return x, update, None, 1 + scale, shift, EPS, False
    return x, update, gate, scale, shift, EPS, True


def case(tokens: int, width: int, form: str, dtype: torch.dtype = torch.bfloat16, batch: int = 1) -> Case:
    """One entry of the batch has so many tokens; `form` as in `arguments`."""
    title = f"{form}, {batch} x {counted(tokens, 'token')}, H={width}, {dtype_name(dtype)}"
    return Case(title, (arguments((batch, tokens, width), dtype, form),))


ADALN = KernelSpec(
    name="adaln",
    summary="Residual sum, layer norm and modulation by time",
    source=SOURCE,
    limits=(
        f"H up to {MAX_WIDTH:,}",
        "x and update of one dtype, bf16 or fp32",
        "gate, scale and shift in fp32, one for each entry of the batch",
    ),
    roundings=("residual sum", "output"),
    twin=each_rank(adaln_twin),
    oracle=each_rank(adaln_oracle),
    cases=lambda: (
        case(300, 5120, "gated"),
        case(257, 3072, "sum"),
        case(400, 3072, "norm"),
        case(130, 96, "gated", batch=2),
        case(1, 64, "norm"),
        case(300, 200, "gated", torch.float32),
        case(300, 600, "norm", torch.float32),
    ),
    roofline=lambda: (case(4096, 5120, "gated"), case(4096, 5120, "sum"), case(4096, 5120, "norm")),
)
