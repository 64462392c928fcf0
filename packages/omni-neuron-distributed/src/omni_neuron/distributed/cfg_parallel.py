"""Classifier-free guidance with one branch per rank (Ho and Salimans 2022, equation 6).

A prediction is a tensor, or a tuple of tensors for a model that makes several (video and sound); each is
guided alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from omni_neuron.distributed.collectives import all_gather_stacked
from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.groups import ParallelGroup

Prediction = TypeVar("Prediction", torch.Tensor, tuple[torch.Tensor, ...])
Condition = TypeVar("Condition")


def combine_guidance(positive: Prediction, negative: Prediction, scale: float | torch.Tensor) -> Prediction:
    """``negative + scale * (positive - negative)``, each operation rounded to the inputs' dtype.

    ``scale`` is a number, or a scalar tensor, with which one graph serves every scale. Neither is rounded
    below float32 before the product.
    """
    if isinstance(positive, tuple):
        pairs = zip(positive, negative, strict=True)
        return tuple(combine_guidance(*pair, scale) for pair in pairs)
    difference = positive - negative
    wide = torch.promote_types(difference.dtype, torch.float32)
    return negative + (scale * difference.to(wide)).to(difference.dtype)


def gather_guidance(prediction: Prediction, scale: float | torch.Tensor, group: ParallelGroup) -> Prediction:
    """The guided prediction on every rank, bit-equal to :func:`combine_guidance` on one.

    Position 0 of the group passes the positive branch, position 1 the negative one, in one shape and
    dtype. Gather and combination trace into one graph that is the same on both ranks.

    Raises:
        LayoutError: the group has not two ranks.
    """
    _check_branches(group)
    if isinstance(prediction, tuple):
        return tuple(gather_guidance(part, scale, group) for part in prediction)
    positive, negative = all_gather_stacked(prediction, group).unbind(0)
    return combine_guidance(positive, negative, scale)


def guided_prediction(
    predict: Callable[[Condition], Prediction],
    positive: Condition,
    negative: Condition | None,
    scale: float,
    group: ParallelGroup,
) -> Prediction:
    """One denoising step's prediction, equal on every rank, whatever the group's size.

    A stage whose ``scale`` is at most 1 does not guide: every rank predicts the positive branch, and
    ``negative`` may be None. Above 1, one rank predicts both branches in turn, two ranks one each.

    Args:
        predict: the model, given the condition of a branch.
        positive, negative: conditions, such as prompt embeddings.
        scale: the guidance scale of the present stage.
        group: the guidance group, of one or two ranks.

    Raises:
        LayoutError: the stage guides, and there is no negative condition or a group of other size.
    """
    if scale <= 1:
        return predict(positive)
    if negative is None:
        raise LayoutError(f"negative is None, but a guidance scale of {scale} needs that branch: pass it.")
    if group.size == 1:
        return combine_guidance(predict(positive), predict(negative), scale)
    _check_branches(group)
    return gather_guidance(predict(negative if group.rank_in_group else positive), scale, group)


def _check_branches(group: ParallelGroup) -> None:
    if group.size != 2:
        raise LayoutError(
            f"{group.name} group of size {group.size} cannot hold the two guidance branches: use cfg=2, "
            "or combine_guidance on one rank."
        )
