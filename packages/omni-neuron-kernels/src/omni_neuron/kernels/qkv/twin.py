"""The projection as the kernel computes it: float32 from the products on, one rounding at the end."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Projection:
    """q, k `[T, width]` and v in fp32 with bias, before norm and rotation; what has no column is empty."""

    q: Tensor
    k: Tensor
    v: Tensor


def project(x: Tensor, weight: Tensor, bias: Tensor | None, widths: tuple[int, int, int]) -> Projection:
    """x `[T, hidden]` times weight `[hidden, sum(widths)]`, plus bias."""
    product = x.float() @ weight.float()
    if bias is not None:
        product = product + bias.float()
    return Projection(*product.split(widths, dim=1))


def sum_of_squares(rows: Tensor) -> Tensor:
    """`[T, width]` to `[T, 1]`: what the ranks add up for the norm."""
    return rows.square().sum(dim=1, keepdim=True)


def rotate_halves(rows: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """rows `[T, heads, D]`, cos and sin `[T, D / 2]`: halves (a, b) to (a cos - b sin, b cos + a sin).

    RoPE (Su et al. 2021, equation 34) for pairs (i, i + D / 2).
    """
    a, b = rows.chunk(2, dim=-1)
    c, s = cos.unsqueeze(1), sin.unsqueeze(1)
    return torch.cat((a * c - b * s, b * c + a * s), dim=-1)


def finish_rows(
    rows: Tensor,
    dim: int,
    gamma: Tensor | None,
    mean_square: Tensor | None,
    eps: float,
    cos: Tensor | None,
    sin: Tensor | None,
    dtype: torch.dtype,
) -> Tensor:
    """q or k `[T, width]` to `[heads, D, T]`: gain, rotation, then the norm's factor of each token."""
    if gamma is not None:
        rows = rows * gamma.float()
    heads = rows.unflatten(1, (-1, dim))
    if cos is not None and sin is not None:
        heads = rotate_halves(heads, cos, sin)
    if gamma is not None and mean_square is not None:
        heads = heads * (mean_square + eps).rsqrt().unsqueeze(1)
    return heads.permute(1, 2, 0).to(dtype).contiguous()


def finish_tokens(rows: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    """v `[T, width]` to `[heads, T, D]`."""
    return rows.unflatten(1, (-1, dim)).transpose(0, 1).to(dtype).contiguous()


def qkv_twin(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gamma_q: Tensor | None,
    gamma_k: Tensor | None,
    cos: Tensor | None,
    sin: Tensor | None,
    heads: tuple[int, int, int],
    eps: float,
    ranks: int = 1,
    reduce: Callable[[Tensor], Tensor] = lambda sums: sums,
) -> list[Tensor]:
    """q and k `[heads, D, T]` and v `[heads, T, D]`, those that have heads, in the dtype of x.

    `reduce` adds fp32 sums of squares over the `ranks` that share the heads (Zhang and Sennrich 2019,
    equation 4, over all of them).
    """
    dim = weight.shape[1] // sum(heads)
    parts = project(x, weight, bias, (heads[0] * dim, heads[1] * dim, heads[2] * dim))
    results = []
    for rows, count, gamma in ((parts.q, heads[0], gamma_q), (parts.k, heads[1], gamma_k)):
        if count:
            mean = None if gamma is None else reduce(sum_of_squares(rows)) / (rows.shape[1] * ranks)
            results.append(finish_rows(rows, dim, gamma, mean, eps, cos, sin, x.dtype))
    if heads[2]:
        results.append(finish_tokens(parts.v, dim, x.dtype))
    return results
