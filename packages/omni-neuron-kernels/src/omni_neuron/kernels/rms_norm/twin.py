"""RMSNorm as the kernel computes it: float32 within, one rounding at the end."""

from torch import Tensor


def rms_norm_twin(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x `[..., H]`, weight `[H]`; the result has the dtype of x (Zhang and Sennrich 2019, equation 4)."""
    wide = x.float()
    inverse = (wide.square().mean(dim=-1, keepdim=True) + eps).rsqrt()
    return (wide * inverse * weight.float()).to(x.dtype)
