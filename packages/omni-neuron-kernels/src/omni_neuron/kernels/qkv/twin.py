"""The projection as the kernel computes it: float32 from the products on, one rounding at the end."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

Heads = tuple[int, int, int]


class QkvArguments(NamedTuple):
    """Those of the kernel on one rank, in its order."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    gamma_q: Tensor | None
    gamma_k: Tensor | None
    cos: Tensor | None
    sin: Tensor | None
    heads_q: int
    heads_k: int
    heads_v: int
    eps: float
    replica_groups: tuple[tuple[int, ...], ...] | None

    @property
    def heads(self) -> Heads:
        return self.heads_q, self.heads_k, self.heads_v

    @property
    def gammas(self) -> tuple[Tensor | None, Tensor | None]:
        return self.gamma_q, self.gamma_k

    @property
    def dim(self) -> int:
        return self.weight.shape[1] // sum(self.heads)


def project(x: Tensor, weight: Tensor, bias: Tensor | None, heads: Heads) -> tuple[Tensor, ...]:
    """x `[T, hidden]` times weight `[hidden, sum(heads) * D]` plus bias: fp32 `[T, heads, D]` of each."""
    product = x.float() @ weight.float()
    if bias is not None:
        product = product + bias.float()
    dim = weight.shape[1] // sum(heads)
    return torch.split(product.view(len(x), sum(heads), dim), list(heads), dim=1)


def sums_of_squares(
    parts: Sequence[Tensor], gamma_q: Tensor | None, gamma_k: Tensor | None
) -> list[Tensor | None]:
    """`[T, 1, 1]` fp32 of q and of k, which the ranks add up; None where there is no norm."""
    return [
        None if gamma is None else part.square().sum(dim=(1, 2), keepdim=True)
        for part, gamma in zip(parts, (gamma_q, gamma_k), strict=False)
    ]


def rotate_halves(part: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """part `[T, heads, D]`, cos and sin `[T, D / 2]`: halves (a, b) to (a cos - b sin, b cos + a sin).

    RoPE (Su et al. 2021, equation 34) for the pairs (i, i + D / 2).
    """
    a, b = part.chunk(2, dim=-1)
    c, s = cos.unsqueeze(1), sin.unsqueeze(1)
    return torch.cat((a * c - b * s, b * c + a * s), dim=-1)


def complete(
    parts: Sequence[Tensor],
    gammas: Sequence[Tensor | None],
    sums: Sequence[Tensor | None],
    cos: Tensor | None,
    sin: Tensor | None,
    eps: float,
    ranks: int,
    dtype: torch.dtype,
) -> list[Tensor]:
    """Gain, rotation and the norm's factor of each token; then layout and rounding. Parts without heads go.

    The norm is that of Zhang and Sennrich 2019, equation 4, over all heads of all `ranks`, whose sums of
    squares together are `sums`.
    """
    results = []
    for part, gamma, total in zip(parts[:2], gammas, sums, strict=True):
        rows = part
        if gamma is not None:
            rows = rows * gamma.float().view(1, -1, part.shape[2])
        if cos is not None and sin is not None:
            rows = rotate_halves(rows, cos, sin)
        if total is not None:
            width = part.shape[1] * part.shape[2] * ranks
            rows = rows * (total / width + eps).rsqrt()
        if part.shape[1]:
            results.append(rows.permute(1, 2, 0).to(dtype).contiguous())
    if parts[2].shape[1]:
        results.append(parts[2].transpose(0, 1).to(dtype).contiguous())
    return results


def qkv_twin(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gamma_q: Tensor | None,
    gamma_k: Tensor | None,
    cos: Tensor | None,
    sin: Tensor | None,
    heads: Heads,
    eps: float,
    ranks: int = 1,
    reduce: Callable[[Tensor], Tensor] = lambda sums: sums,
) -> list[Tensor]:
    """One rank of the kernel; `reduce` adds fp32 `[T, 1, 1]` over the `ranks` that share the heads.

    Returns q and k `[heads, D, T]` and v `[heads, T, D]` in the dtype of x, without those that have no head.
    """
    parts = project(x, weight, bias, heads)
    sums = [None if total is None else reduce(total) for total in sums_of_squares(parts, gamma_q, gamma_k)]
    return complete(parts, (gamma_q, gamma_k), sums, cos, sin, eps, ranks, x.dtype)


def qkv_twin_of_ranks(ranks: Sequence[tuple[Any, ...]]) -> list[tuple[Tensor, ...]]:
    """Every rank's twin, with the sums of squares added up in the order of the ranks.

    `ranks` has what `QkvArguments` names of each rank.
    """
    of_ranks = [QkvArguments(*of) for of in ranks]
    parts = [project(of.x, of.weight, of.bias, of.heads) for of in of_ranks]
    sums = [sums_of_squares(part, *of.gammas) for part, of in zip(parts, of_ranks, strict=True)]
    totals = [_added([one[i] for one in sums]) for i in range(2)]
    return [
        tuple(complete(part, of.gammas, totals, of.cos, of.sin, of.eps, len(ranks), of.x.dtype))
        for part, of in zip(parts, of_ranks, strict=True)
    ]


def _added(sums: Sequence[Tensor | None]) -> Tensor | None:
    total = sums[0]
    for one in sums[1:]:
        total = None if total is None or one is None else total + one
    return total
