"""Classifier-free guidance with one branch per rank (Ho and Salimans 2022, equation 6)."""

from __future__ import annotations

import torch

from omni_neuron.distributed.collectives import all_gather_stacked
from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.groups import ParallelGroup


def combine_guidance(
    positive: torch.Tensor, negative: torch.Tensor, scale: float | torch.Tensor
) -> torch.Tensor:
    """``negative + scale * (positive - negative)`` in the inputs' dtype."""
    return negative + scale * (positive - negative)


def gather_guidance(
    prediction: torch.Tensor, scale: float | torch.Tensor, group: ParallelGroup
) -> torch.Tensor:
    """The guided prediction on every rank, bit-equal to :func:`combine_guidance` on one.

    Rank 0 of the group passes the positive branch, rank 1 the negative one, in one shape and dtype.
    """
    if group.size != 2:
        raise LayoutError(
            f"{group.name} group of size {group.size} cannot hold the two guidance branches: use cfg=2, "
            "or combine_guidance on one rank."
        )
    positive, negative = all_gather_stacked(prediction, group).unbind(0)
    return combine_guidance(positive, negative, scale)
