"""The MLP as the kernel computes it: float32 sums, the inner activation and the result rounded."""

import torch
from torch import Tensor
from torch.nn.functional import gelu


def mlp_twin(
    x: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None, fp32_result: bool
) -> Tensor:
    """x `[T, H]`, w1 `[H, I]`, w2 `[I, H]`, biases or None; gelu's tanh form (Hendrycks and Gimpel 2016)."""
    inner = x.float() @ w1.float()
    if b1 is not None:
        inner = inner + b1.float()
    active = gelu(inner, approximate="tanh").to(x.dtype)
    result = active.float() @ w2.float()
    if b2 is not None:
        result = result + b2.float()
    return result.to(torch.float32 if fp32_result else x.dtype)
