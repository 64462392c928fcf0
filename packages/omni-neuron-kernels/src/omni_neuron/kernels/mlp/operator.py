"""The MLP for models: the kernel where it can run, its twin elsewhere."""

import torch
from torch import Tensor

from omni_neuron.kernels.dtypes import wants_fp32
from omni_neuron.kernels.gate import can_run_kernel
from omni_neuron.kernels.limits import DTYPES
from omni_neuron.kernels.mlp.plan import tiles_per_pass
from omni_neuron.kernels.mlp.twin import mlp_twin
from omni_neuron.kernels.operator import kernel_operator, launch
from omni_neuron.kernels.shapes import require_dims, require_shape

SOURCE = "omni_neuron.kernels.mlp.kernel:mlp_kernel"


def fits_mlp(x: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None) -> bool:
    """The kernel's gate: one dtype, bf16 or fp32, and 128 tokens fit SBUF before and after the activation.

    The last holds up to I = 66,000 in bf16 and 23,000 in fp32 at H = 5,120.
    """
    hidden, inner = w1.shape
    return (
        x.dtype in DTYPES
        and all(given is None or given.dtype == x.dtype for given in (w1, b1, w2, b2))
        and min(x.numel(), inner) > 0
        and tiles_per_pass(hidden, inner, x.element_size()) > 0
    )


def _require(x: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None) -> None:
    require_dims("w1", w1, "[H, I]")
    hidden, inner = w1.shape
    require_shape("x", x, (*x.shape[:-1], hidden))
    require_shape("b1", b1, (inner,))
    require_shape("w2", w2, (inner, hidden))
    require_shape("b2", b2, (hidden,))


def _fake(
    x: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None, fp32_result: bool
) -> Tensor:
    return x.new_empty(x.shape, dtype=torch.float32 if fp32_result else x.dtype)


@kernel_operator(_fake)
def _mlp(
    x: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None, fp32_result: bool
) -> Tensor:
    rows: Tensor = launch(SOURCE, x.reshape(-1, x.shape[-1]), w1, b1, w2, b2, fp32_result)
    return rows.reshape(x.shape)


def mlp(
    x: Tensor,
    w1: Tensor,
    b1: Tensor | None,
    w2: Tensor,
    b2: Tensor | None,
    result_dtype: torch.dtype | None = None,
) -> Tensor:
    """gelu(x w1 + b1) w2 + b2, with gelu in its tanh form.

    Under tensor parallelism each rank holds I channels: columns of w1 and b1, rows of w2. The sum over ranks
    is the caller's, and so is b2, which is to be added once: one rank passes it, or all pass a part of it.

    Args:
        x: `[..., H]`, bfloat16 or float32; any number of tokens.
        w1: `[H, I]`, inputs by outputs, the dtype of x.
        b1: `[I]` of the same dtype, or None.
        w2: `[I, H]` of the same dtype.
        b2: `[H]` of the same dtype, or None.
        result_dtype: that of x (the default), or float32 for partial sums that nothing has rounded.

    Returns:
        `[..., H]` in `result_dtype`. Sums are float32; the inner activation is rounded to the dtype of x, and
        the result to its own. The kernel computes it where `can_run_kernel` and `fits_mlp` say so, its twin
        elsewhere.

    Raises:
        InputError: another `result_dtype`, or other shapes.
    """
    _require(x, w1, b1, w2, b2)
    fp32_result = wants_fp32(result_dtype, x.dtype)
    if can_run_kernel(x) and fits_mlp(x, w1, b1, w2, b2):
        return _mlp(x, w1, b1, w2, b2, fp32_result)
    return mlp_twin(x, w1, b1, w2, b2, fp32_result)
