"""Softmax attention over keys that come in blocks, merged exactly.

Mathematics: the online softmax of Milakov and Gimelshein 2018, in the form of FlashAttention-2 (Dao 2023,
section 3.1): each block gives its normalised result and the log-sum-exp of its scores, and the whole
result is their average weighted by ``exp(lse)``. The true maximum of each row is the shift, so every
exponent is at or below zero, no row overflows and none vanishes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch

# Below every score and yet finite: the log-sum-exp of a block without keys, whose weight becomes exactly 0.
EMPTY = -1e30


class AttentionWithLse(Protocol):
    """Attention of one block of keys that also tells how much weight the block carries."""

    def __call__(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, key_mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attend to the keys of one block.

        Args:
            query: ``[B, Sq, H, D]``.
            key, value: ``[B, Sk, H, D]``.
            key_mask: bool ``[B, Sk]``, True = attend; a block may have no key at all. None = all.

        Returns:
            ``(out, lse)``: the softmax-weighted values ``[B, Sq, H, D]``, not rounded below float32, zero
            for a row without keys; and the natural log of the sum of ``exp(scores)``, float32
            ``[B, Sq, H]``, at or below ``EMPTY`` for a row without keys.
        """
        ...


def attention_with_lse(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, key_mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """:class:`AttentionWithLse` in torch operations, the softmax scale being ``1 / sqrt(D)``.

    Inputs below float32 are raised to it first, and nothing is rounded after. The scores of a whole block,
    ``[B, H, Sq, Sk]``, are in memory at once.
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    queries = query.transpose(1, 2).to(dtype)  # [B, H, Sq, D]
    keys = key.permute(0, 2, 3, 1).to(dtype)  # [B, H, D, Sk]
    scores = torch.matmul(queries, keys) * (1.0 / math.sqrt(query.shape[-1]))
    if key_mask is not None:
        allowed = key_mask[:, None, None, :]
        scores = torch.where(allowed, scores, EMPTY)
    maximum = scores.amax(dim=-1, keepdim=True)
    weights = torch.exp(scores - maximum)
    if key_mask is not None:
        weights = weights * allowed
    # A row with a key sums to at least 1, its own maximum; a row without one sums to 0.
    total = weights.sum(dim=-1, keepdim=True).clamp_min(1.0)
    out = torch.matmul(weights, value.transpose(1, 2).to(dtype)) / total
    return out.transpose(1, 2), (maximum + torch.log(total)).squeeze(-1).transpose(1, 2)


@dataclass(frozen=True)
class OnlineSoftmax:
    """What is known after some blocks of keys.

    Args:
        weighted: sum of the blocks' results, each times ``exp(lse - maximum)``: ``[B, Sq, H, D]``.
        weight: sum of those factors, ``[B, Sq, H]``.
        maximum: the largest log-sum-exp so far, ``[B, Sq, H]``.
    """

    weighted: torch.Tensor
    weight: torch.Tensor
    maximum: torch.Tensor

    @classmethod
    def first(cls, out: torch.Tensor, lse: torch.Tensor) -> OnlineSoftmax:
        """The state after one block."""
        return cls(out, torch.ones_like(lse), lse.clamp_min(EMPTY))

    def merge(self, out: torch.Tensor, lse: torch.Tensor) -> OnlineSoftmax:
        """The state after one more block."""
        maximum = torch.maximum(self.maximum, lse)
        before, block = torch.exp(self.maximum - maximum), torch.exp(lse - maximum)
        return OnlineSoftmax(
            self.weighted * before.unsqueeze(-1) + out * block.unsqueeze(-1),
            self.weight * before + block,
            maximum,
        )

    def result(self) -> torch.Tensor:
        """Attention over all blocks, ``[B, Sq, H, D]``; zero for a row without keys."""
        return self.weighted / self.weight.unsqueeze(-1)
