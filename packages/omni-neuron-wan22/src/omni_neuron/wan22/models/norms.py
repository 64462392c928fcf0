"""Normalisations of the Wan transformer; all of them compute in float32 and round once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from omni_neuron.distributed.collectives import all_reduce
from omni_neuron.distributed.errors import shard_size
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.loading.weight_loaders import set_weight_loader, sharded


class DistributedRMSNorm(nn.Module):
    """RMS norm over all ``dim`` channels, of which this rank holds ``dim/tp``.

    ``y = x / sqrt(mean(x^2) + eps) * weight``, the mean taken over every head of every rank: a norm over
    one rank's heads would be another function. The weight ``[dim/tp]`` is this rank's slice.
    """

    def __init__(
        self,
        dim: int,
        group: ParallelGroup,
        eps: float,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.group = group
        self.eps = eps
        local = shard_size("dim", dim, group.size)
        self.weight = nn.Parameter(torch.empty(local, dtype=dtype, device=device))
        set_weight_loader(self.weight, sharded(0, group))

    def inverse_rms(self, *xs: torch.Tensor) -> Sequence[torch.Tensor]:
        """``1 / sqrt(mean(x^2) + eps)`` of each ``x [..., dim/tp]``, float32 ``[..., 1]``.

        All of them must have one shape; they share one all-reduce.
        """
        squares: Sequence[torch.Tensor] = [sum_of_squares(x) for x in xs]
        if self.group.size > 1:
            squares = all_reduce(torch.stack(list(squares)), self.group).unbind(0)
        return [torch.rsqrt(square / self.dim + self.eps) for square in squares]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[..., dim/tp] -> [..., dim/tp]``."""
        (scale,) = self.inverse_rms(x)
        return (x * scale * self.weight.float()).to(x.dtype)


def sum_of_squares(x: torch.Tensor) -> torch.Tensor:
    """Sum over the last dimension in float32, ``[..., n] -> [..., 1]``."""
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return x.float().square().sum(-1, keepdim=True)
    # Step by step, the host would write the squares to memory and read them back.
    norm: torch.Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
    return norm.square()


class FP32LayerNorm(nn.Module):
    """Layer norm with float32 weight and bias ``[dim]``, whatever the dtype of its input."""

    def __init__(self, dim: int, eps: float, *, device: torch.device | str | None = None) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.empty(dim, dtype=torch.float32, device=device))
        self.bias = nn.Parameter(torch.empty(dim, dtype=torch.float32, device=device))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # The operator takes a bf16 input with float32 parameters and rounds its result once.
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


def modulated_layer_norm(
    x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor, eps: float
) -> torch.Tensor:
    """``layer_norm(x) * (1 + scale) + shift``, rounded once to the dtype of ``x [B, S, d]``.

    ``shift`` and ``scale`` are float32, ``[B, 1, d]`` for a sample or ``[B, S, d]`` for each token.
    """
    dim = (x.shape[-1],)
    if scale.shape[0] == scale.shape[1] == 1:
        return functional.layer_norm(x, dim, 1 + scale[0, 0], shift[0, 0], eps)
    normal = functional.layer_norm(x.float(), dim, eps=eps)
    return torch.addcmul(shift, normal, 1 + scale).to(x.dtype)


def gated_residual(x: torch.Tensor, update: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """``x + update * gate`` in float32, rounded once to the dtype of ``x``; ``gate`` as a modulation."""
    return torch.addcmul(x.float(), update.float(), gate).to(x.dtype)
