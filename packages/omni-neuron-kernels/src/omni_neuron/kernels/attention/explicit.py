"""Attention written out: two matrix products around a softmax with the true maximum of each row.

Masked scaled-dot-product attention becomes an opaque operator in the native Neuron lowering and does not
legalise; these operations do. Mathematics: Vaswani et al. 2017, section 3.2.1, with the shift by the row
maximum that leaves the softmax unchanged and keeps every exponent at or below zero.
"""

import math

import torch
from torch import Tensor

# Far below any score and yet finite, so that a row without a key stays free of NaN.
_MASKED = -1e30


def explicit_attention(
    query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor | None = None, scale: float | None = None
) -> Tensor:
    """Softmax attention over the keys that `key_mask` allows.

    Args:
        query: `[B, Sq, H, D]`, float32 or bfloat16.
        key: `[B, Sk, H, D]`, the dtype of `query`.
        value: `[B, Sk, H, D]`, the dtype of `query`.
        key_mask: bool `[B, Sk]`, True for a key that takes part; None for all of them.
        scale: factor of the scores, `1 / sqrt(D)` by default.

    Returns:
        `[B, Sq, H, D]` in the dtype of `query`. A batch entry whose keys are all masked gives zeros.

    Scores and softmax are float32. In bfloat16 two roundings happen: the probabilities before the second
    product, and the result.
    """
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    heads_first = query.transpose(1, 2).float()  # [B, H, Sq, D]
    keys = key.permute(0, 2, 3, 1).float()  # [B, H, D, Sk]
    scores = torch.matmul(heads_first, keys) * factor  # [B, H, Sq, Sk]
    if key_mask is None:
        weights = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
        probabilities = weights / weights.sum(dim=-1, keepdim=True)
    else:
        allowed = key_mask[:, None, None, :]  # [B, 1, 1, Sk]
        scores = scores + torch.where(allowed, 0.0, _MASKED)
        weights = torch.exp(scores - scores.amax(dim=-1, keepdim=True)) * allowed
        # A row with a key sums to at least 1, its own maximum; a row without one sums to 0.
        probabilities = weights / weights.sum(dim=-1, keepdim=True).clamp_min(1.0)
    return torch.matmul(probabilities.to(value.dtype), value.transpose(1, 2)).transpose(1, 2)
