"""RMSNorm for models: the kernel where it can run, its twin elsewhere."""

import torch
from torch import Tensor

from omni_neuron.kernels.gate import can_run_kernel
from omni_neuron.kernels.limits import DTYPES
from omni_neuron.kernels.operator import kernel_operator, launch
from omni_neuron.kernels.rms_norm.twin import rms_norm_twin
from omni_neuron.kernels.shapes import require_shape

SOURCE = "omni_neuron.kernels.rms_norm.kernel:rms_norm_kernel"
MAX_WIDTH = 8192


def fits_rms_norm(x: Tensor, weight: Tensor) -> bool:
    """The kernel's gate: bf16 or fp32, x and weight of one dtype, H up to 8,192."""
    return x.dtype in DTYPES and weight.dtype == x.dtype and x.shape[-1] <= MAX_WIDTH and x.numel() > 0


def _fake(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@kernel_operator(_fake)
def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    rows: Tensor = launch(SOURCE, x.reshape(-1, x.shape[-1]), weight, eps)
    return rows.reshape(x.shape)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension.

    Args:
        x: `[..., H]`, bfloat16 or float32.
        weight: `[H]`, the dtype of x.
        eps: added to the mean square.

    Returns:
        `[..., H]` in the dtype of x, rounded once. The kernel computes it where `can_run_kernel` and
        `fits_rms_norm` say so, its twin elsewhere.

    Raises:
        InputError: another shape of weight.
    """
    require_shape("weight", weight, tuple(x.shape[-1:]))
    if can_run_kernel(x) and fits_rms_norm(x, weight):
        return _rms_norm(x, weight, eps)
    return rms_norm_twin(x, weight, eps)
