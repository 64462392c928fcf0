"""Checkpoints whose rotation pairs neighbours, brought to the order in which the kernel rotates.

Wan turns the dimensions (2 i, 2 i + 1) of a head by the angle i; the kernel turns (i, i + D / 2), which are
whole partitions. Moving the dimensions of q and of k alike changes no score, so the weights are moved once,
when they are loaded. Of Wan's own tables, which have each angle twice, every second column is used.
"""

import torch
from torch import Tensor


def neighbours_to_halves(parameter: Tensor, head_dim: int, axis: int = -1) -> Tensor:
    """A parameter with the dimensions of q or k along `axis`, each head's even ones before its odd ones.

    Args:
        parameter: weights, bias or norm gain of q alone or k alone; `axis` has `heads * head_dim` elements.
        head_dim: dimensions of a head, an even number.
        axis: of the dimensions; -1 for weights stored in by out, 0 for those of `torch.nn.Linear`.

    ValueError where `head_dim` is odd or does not divide the axis.
    """
    size = parameter.shape[axis]
    if head_dim % 2 or size % head_dim:
        raise ValueError(
            f"head_dim is {head_dim} and axis {axis} has {size} elements: it must be even and divide them."
        )
    order = torch.arange(size).view(-1, head_dim // 2, 2).transpose(1, 2).reshape(-1)
    return parameter.index_select(axis, order.to(parameter.device))


def fused_to_halves(parameter: Tensor, heads: tuple[int, int, int], head_dim: int) -> Tensor:
    """Weights `[hidden, sum(heads) * D]` or a bias, of q | k | v, with q and k brought to halves."""
    q, k, v = torch.split(parameter, [count * head_dim for count in heads], dim=-1)
    return torch.cat((neighbours_to_halves(q, head_dim), neighbours_to_halves(k, head_dim), v), dim=-1)
