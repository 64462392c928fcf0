"""Layer norm with modulation for models: the kernel where it can run, its twin elsewhere."""

from typing import cast

import torch
from torch import Tensor

from omni_neuron.kernels.adaln.twin import adaln_twin
from omni_neuron.kernels.gate import can_run_kernel
from omni_neuron.kernels.limits import DTYPES
from omni_neuron.kernels.operator import kernel_operator, launch
from omni_neuron.kernels.shapes import require_dims, require_shape

SOURCE = "omni_neuron.kernels.adaln.kernel:adaln_kernel"
MAX_WIDTH = 7168


def fits_adaln(x: Tensor, update: Tensor | None, gate: Tensor | None, scale: Tensor, shift: Tensor) -> bool:
    """The kernel's gate, with the arguments of `residual_adaln`; None for what is absent.

    x and update in bf16 or fp32, H up to 7,168; the rest fp32.

    scale, shift and gate must be the same for all tokens of an entry of the batch.
    """
    vectors = [v for v in (gate, scale, shift) if v is not None]
    return (
        x.dtype in DTYPES
        and x.numel() > 0
        and x.shape[-1] <= MAX_WIDTH
        and (update is None or update.dtype == x.dtype)
        and all(v.dtype == torch.float32 and _is_one_row(v) for v in vectors)
    )


def _is_one_row(vector: Tensor) -> bool:
    """Whether `vector` is `[H]`, `[1, 1, H]` or `[B, 1, H]`, not `[B, S, H]`."""
    return vector.ndim == 1 or vector.shape[1] == 1


def _require(x: Tensor, update: Tensor | None, gate: Tensor | None, scale: Tensor, shift: Tensor) -> None:
    require_dims("x", x, "[B, S, H]")
    batch, _, width = x.shape
    require_shape("update", update, tuple(x.shape))
    for name, vector in (("gate", gate), ("scale", scale), ("shift", shift)):
        require_shape(name, vector, (width,), (1, 1, width), (batch, 1, width), tuple(x.shape))


def _rows(vector: Tensor, batch: int) -> Tensor:
    """`[H]`, `[1, 1, H]` or `[B, 1, H]` as `[B, H]`."""
    return vector.reshape(-1, vector.shape[-1]).expand(batch, -1).contiguous()


def _fake_norm(x: Tensor, scale: Tensor, shift: Tensor, eps: float, unit_offset: bool) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@kernel_operator(_fake_norm)
def _adaln(x: Tensor, scale: Tensor, shift: Tensor, eps: float, unit_offset: bool) -> Tensor:
    return cast(Tensor, launch(SOURCE, x, None, None, scale, shift, eps, unit_offset))


def _fake_sum(
    x: Tensor,
    update: Tensor,
    gate: Tensor | None,
    scale: Tensor,
    shift: Tensor,
    eps: float,
    unit_offset: bool,
) -> tuple[Tensor, Tensor]:
    return _fake_norm(x, scale, shift, eps, unit_offset), _fake_norm(x, scale, shift, eps, unit_offset)


@kernel_operator(_fake_sum)
def _residual_adaln(
    x: Tensor,
    update: Tensor,
    gate: Tensor | None,
    scale: Tensor,
    shift: Tensor,
    eps: float,
    unit_offset: bool,
) -> tuple[Tensor, Tensor]:
    total, out = launch(SOURCE, x, update, gate, scale, shift, eps, unit_offset)
    return total, out


def adaln(x: Tensor, scale: Tensor, shift: Tensor, eps: float, unit_offset: bool = True) -> Tensor:
    """Layer norm over the last dimension, then a modulation: xhat * (1 + scale) + shift.

    Args:
        x: `[B, S, H]`, bfloat16 or float32.
        scale: float32 `[H]`, `[1, 1, H]` or `[B, 1, H]`; `[B, S, H]`, one for each token, goes to the twin.
        shift: as scale.
        eps: added to the variance.
        unit_offset: False where scale is a weight, and shift a bias: xhat * scale + shift.

    Returns:
        `[B, S, H]` in the dtype of x, rounded once. The kernel computes it where `can_run_kernel` and
        `fits_adaln` say so, its twin elsewhere. Source: Peebles and Xie 2023, section 3.2.

    Raises:
        InputError: other shapes.
    """
    _require(x, None, None, scale, shift)
    if can_run_kernel(x) and fits_adaln(x, None, None, scale, shift):
        batch = x.shape[0]
        return _adaln(x, _rows(scale, batch), _rows(shift, batch), eps, unit_offset)
    return cast(Tensor, adaln_twin(x, None, None, scale, shift, eps, unit_offset))


def residual_adaln(
    x: Tensor,
    update: Tensor,
    gate: Tensor | None,
    scale: Tensor,
    shift: Tensor,
    eps: float,
    unit_offset: bool = True,
) -> tuple[Tensor, Tensor]:
    """The sum t = x + gate * update, and `adaln` of it.

    Args:
        x: the residual `[B, S, H]`, bfloat16 or float32.
        update: what a branch adds to it, as x.
        gate: float32, shaped as scale; None adds the update as it is.
        scale, shift, eps, unit_offset: as in `adaln`.

    Returns:
        t and its modulated norm, each `[B, S, H]` in the dtype of x. t is summed in float32 and rounded
        once; the norm is that of the rounded t. The kernel computes both where `can_run_kernel` and
        `fits_adaln` say so, its twin elsewhere.

    Raises:
        InputError: other shapes.
    """
    _require(x, update, gate, scale, shift)
    if can_run_kernel(x) and fits_adaln(x, update, gate, scale, shift):
        batch = x.shape[0]
        gates = None if gate is None else _rows(gate, batch)
        return _residual_adaln(x, update, gates, _rows(scale, batch), _rows(shift, batch), eps, unit_offset)
    return cast(tuple[Tensor, Tensor], adaln_twin(x, update, gate, scale, shift, eps, unit_offset))
