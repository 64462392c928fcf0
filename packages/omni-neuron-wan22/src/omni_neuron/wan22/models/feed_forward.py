"""The two-layer perceptron of a Wan block."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.tensor_parallel import ColumnParallelLinear, RowParallelLinear

Approximation = Literal["none", "tanh"]


class GELUProjection(nn.Module):
    """``gelu(x W^T + b)``: ``[..., in] -> [..., out/tp]``."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        group: ParallelGroup,
        approximate: Approximation,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.approximate = approximate
        self.proj = ColumnParallelLinear(in_features, out_features, group, dtype=dtype, device=device)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.proj(x)
        # In place: this is the widest tensor of the model, and a second one costs more than the function.
        torch.ops.aten.gelu_(hidden, approximate=self.approximate)
        return hidden


class WanFeedForward(nn.Module):
    """``W2 gelu(W1 x + b1) + b2``, cut over the inner features: ``[..., in] -> [..., out]``.

    Parameters are named as in diffusers: ``net.0.proj`` and ``net.2``. The blocks use the tanh form of
    GELU, the image embedder the exact one.
    """

    def __init__(
        self,
        in_features: int,
        inner_features: int,
        out_features: int,
        group: ParallelGroup,
        *,
        approximate: Approximation = "tanh",
        reduce_dtype: torch.dtype = torch.float32,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.net = nn.Sequential(
            GELUProjection(in_features, inner_features, group, approximate, dtype=dtype, device=device),
            nn.Identity(),
            RowParallelLinear(
                inner_features, out_features, group, reduce_dtype=reduce_dtype, dtype=dtype, device=device
            ),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.net(x)
        return out
