"""The output projection for models: the kernel where it can run, its twin elsewhere."""

import torch
from torch import Tensor

from omni_neuron.kernels.dtypes import wants_fp32
from omni_neuron.kernels.gate import can_run_kernel
from omni_neuron.kernels.limits import DTYPES
from omni_neuron.kernels.operator import kernel_operator, launch
from omni_neuron.kernels.output_projection.plan import tiles_per_pass
from omni_neuron.kernels.output_projection.twin import output_projection_twin
from omni_neuron.kernels.shapes import require_dims, require_shape

SOURCE = "omni_neuron.kernels.output_projection.kernel:output_projection_kernel"
MAX_HEAD_DIM = 128


def fits_output_projection(attention: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """The kernel's gate: one dtype, bf16 or fp32, D up to 128, and 128 tokens fit SBUF twice.

    The last holds up to heads * D = 43,000 in bf16 and 20,000 in fp32 at H = 5,120.
    """
    inner, width = weight.shape
    return (
        attention.dtype in DTYPES
        and all(given is None or given.dtype == attention.dtype for given in (weight, bias))
        and attention.shape[1] <= MAX_HEAD_DIM
        and min(attention.numel(), width) > 0
        and tiles_per_pass(inner, width, attention.element_size()) > 0
    )


def _require(attention: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    require_dims("attention", attention, "[heads, D, T]")
    require_dims("weight", weight, "[heads * D, H]")
    heads, size, _ = attention.shape
    width = weight.shape[1]
    require_shape("weight", weight, (heads * size, width))
    require_shape("bias", bias, (width,))


def _fake(attention: Tensor, weight: Tensor, bias: Tensor | None, fp32_result: bool) -> Tensor:
    dtype = torch.float32 if fp32_result else attention.dtype
    return attention.new_empty((attention.shape[2], weight.shape[1]), dtype=dtype)


@kernel_operator(_fake)
def _output_projection(attention: Tensor, weight: Tensor, bias: Tensor | None, fp32_result: bool) -> Tensor:
    result: Tensor = launch(SOURCE, attention, weight, bias, fp32_result)
    return result


def output_projection(
    attention: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    result_dtype: torch.dtype | None = None,
) -> Tensor:
    """The heads' outputs times the weight of the attention's last linear layer, plus its bias.

    Under tensor parallelism each rank holds its heads and their rows of the weight; the sum over ranks is the
    caller's, and so is a bias that is to be added once: one rank passes it, or all pass a part of it.

    Args:
        attention: `[heads, D, T]`, d-major as attention leaves it, bfloat16 or float32.
        weight: `[heads * D, H]`, inputs by outputs, the dtype of attention.
        bias: `[H]` of the same dtype, or None.
        result_dtype: that of attention (the default), or float32 for partial sums that nothing has rounded.

    Returns:
        `[T, H]` in `result_dtype`, summed in float32 and rounded once. The kernel computes it where
        `can_run_kernel` and `fits_output_projection` say so, its twin elsewhere.

    Raises:
        InputError: another `result_dtype`, or other shapes.
    """
    _require(attention, weight, bias)
    fp32_result = wants_fp32(result_dtype, attention.dtype)
    if can_run_kernel(attention) and fits_output_projection(attention, weight, bias):
        return _output_projection(attention, weight, bias, fp32_result)
    return output_projection_twin(attention, weight, bias, fp32_result)
