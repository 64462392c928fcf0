"""The output projection as the kernel computes it: float32 sums, one rounding at the end."""

import torch
from torch import Tensor


def output_projection_twin(
    attention: Tensor, weight: Tensor, bias: Tensor | None, fp32_result: bool
) -> Tensor:
    """attention `[heads, D, T]`, weight `[heads * D, H]`, bias `[H]` or None: `[T, H]`."""
    product = attention.flatten(0, 1).float().T @ weight.float()
    if bias is not None:
        product = product + bias.float()
    return product.to(torch.float32 if fp32_result else attention.dtype)
