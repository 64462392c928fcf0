"""Inputs on which attention with a bound for a maximum loses rows, or loses precision.

Each family makes queries and keys `[N, D, S]` in float32 from standard normal ones; scores are meant to be
scaled by 1 / sqrt(D). `lost_by_constant_bound` says what a kernel would do that takes |q| max|k| for every
row's maximum and has bfloat16 weights.
"""

from collections.abc import Callable

import torch
from torch import Tensor

UNDERFLOW_NATS = 85.0  # where the published kernel's row sums reach their floor

Family = Callable[[Tensor, Tensor, float], tuple[Tensor, Tensor]]


def common_offset(query: Tensor, keys: Tensor, nats: float) -> tuple[Tensor, Tensor]:
    """All keys share an offset that moves scores by about `nats`, up or down with the query."""
    direction = torch.nn.functional.normalize(keys[:, :, :1], dim=1)
    return query, keys + direction * nats * query.shape[1] ** 0.5


def one_giant_key(query: Tensor, keys: Tensor, nats: float) -> tuple[Tensor, Tensor]:
    """One key with scores of about `nats`, which half of the queries like and the others do not."""
    keys = keys.clone()
    keys[:, :, keys.shape[2] // 2] *= nats
    return query, keys


def loud_and_ignored(query: Tensor, keys: Tensor, nats: float) -> tuple[Tensor, Tensor]:
    """A loud key at a right angle to all queries: the bound grows by `nats`, no score does."""
    query, keys = query.clone(), keys.clone()
    query[:, 0] = 0.0
    keys[:, 0, 0] = nats
    return query, keys


def large_logits(query: Tensor, keys: Tensor, nats: float) -> tuple[Tensor, Tensor]:
    """Scores that reach from -`nats` to `nats`."""
    scores = query.mT @ keys / query.shape[1] ** 0.5
    return query * (nats / scores.abs().amax()), keys


def equal_keys(query: Tensor, keys: Tensor, nats: float) -> tuple[Tensor, Tensor]:
    """One key, over and over, with scores up to `nats`."""
    same = keys[:, :, :1].expand_as(keys).contiguous()
    return large_logits(query, same, nats)


def zero_queries(query: Tensor, keys: Tensor, nats: float) -> tuple[Tensor, Tensor]:
    """Every other query is zero, among keys with scores up to `nats`."""
    query, keys = large_logits(query, keys, nats)
    query[:, :, ::2] = 0.0
    return query, keys


def equal_queries(query: Tensor, keys: Tensor, nats: float) -> tuple[Tensor, Tensor]:
    """One query, over and over: whatever rounding happens to it happens to every row."""
    same = query[:, :, :1].expand_as(query).contiguous()
    return large_logits(same, keys, nats)


FAMILIES: dict[str, Family] = {
    family.__name__: family
    for family in (
        common_offset,
        one_giant_key,
        loud_and_ignored,
        large_logits,
        equal_keys,
        zero_queries,
        equal_queries,
    )
}


def score_bounds(query: Tensor, keys: Tensor, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """Each row's largest score and two upper bounds of it, float64 `[N, S]`.

    The bounds are scale |q| max|k|, and with the mean key m taken out: scale (q.m + |q| max|k - m|).
    """
    query, keys = query.double(), keys.double()
    largest = scale * (query.mT @ keys).amax(dim=2)
    norms = scale * query.norm(dim=1)
    mean = keys.mean(dim=2, keepdim=True)
    plain = norms * keys.norm(dim=1).amax(dim=1, keepdim=True)
    radius = (keys - mean).norm(dim=1).amax(dim=1, keepdim=True)
    return largest, plain, scale * (query.mT @ mean)[:, :, 0] + norms * radius


def lost_by_constant_bound(query: Tensor, keys: Tensor, scale: float) -> Tensor:
    """Rows that a constant bound sets to zero, bool `[N, S]`."""
    largest, plain, _ = score_bounds(query, keys, scale)
    return plain - largest > UNDERFLOW_NATS
