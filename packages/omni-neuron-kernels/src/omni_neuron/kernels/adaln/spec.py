"""adaLN in the catalogue."""

import torch
from torch import Tensor

from omni_neuron.kernels.adaln.operator import MAX_WIDTH, SOURCE
from omni_neuron.kernels.adaln.twin import adaln_twin
from omni_neuron.kernels.spec import Arguments, Case, KernelSpec, Results, each_rank

EPS = 1e-6


def adaln_oracle(
    x: Tensor,
    scale: Tensor,
    shift: Tensor,
    eps: float,
    unit_offset: bool,
    update: Tensor | None = None,
    gate: Tensor | None = None,
) -> Results:
    scale, shift = (vector.double()[:, None] for vector in (scale, shift))
    total = x.double()
    if update is not None:
        total = total + (1.0 if gate is None else gate.double()[:, None]) * update.double()
    centred = total - total.mean(dim=-1, keepdim=True)
    deviation = (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    out = centred / deviation * (scale + 1 if unit_offset else scale) + shift
    return (out,) if update is None else (total, out)


def adaln_arguments(
    shape: tuple[int, int, int], dtype: torch.dtype, form: str, mean: float = 0.0
) -> Arguments:
    """`form` is `norm`, `sum` (of an update without a gate, then an affine norm) or `gated`."""
    batch, tokens, width = shape
    generator = torch.Generator().manual_seed(tokens + width)

    def normal(*size: int) -> Tensor:
        return torch.randn(size, generator=generator)

    x, update = (mean + normal(*shape)).to(dtype), normal(*shape).to(dtype)
    scale, shift, gate = 0.5 * normal(batch, width), normal(batch, width), normal(batch, width)
    if form == "norm":
        return x, scale, shift, EPS, True
    if form == "sum":
        return x, 1 + scale, shift, EPS, False, update
    return x, scale, shift, EPS, True, update, gate


def _case(tokens: int, width: int, form: str, dtype: torch.dtype = torch.bfloat16, batch: int = 1) -> Case:
    title = f"{form}, {batch} x {tokens} tokens, H={width}, {dtype}".replace("torch.", "")
    return Case(title, (adaln_arguments((batch, tokens, width), dtype, form),))


ADALN = KernelSpec(
    name="adaln",
    summary="residual sum, layer norm and modulation by time",
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
        _case(300, 5120, "gated"),
        _case(257, 3072, "sum"),
        _case(400, 3072, "norm"),
        _case(130, 96, "gated", batch=2),
        _case(1, 64, "norm"),
        _case(300, 200, "gated", torch.float32),
        _case(300, 600, "norm", torch.float32),
    ),
    roofline=lambda: (_case(4096, 5120, "gated"), _case(4096, 5120, "sum"), _case(4096, 5120, "norm")),
)
