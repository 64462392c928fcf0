"""Attention heads cut over a group: any order of heads, zero heads where the group does not divide them.

All ranks of a group must use one order, of which each takes its run: then joining what the ranks hold gives
the heads in that order. Query, key and value share it, and so does the input dimension of the output layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from omni_neuron.distributed.errors import ShardingError, shard_size
from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.distributed.loading.cut import Cut, EqualCut, Run, WeightLoader

Storage = Literal["separate", "packed", "interleaved"]


def head_sharded(
    dim: int,
    group: ParallelGroup,
    num_heads: int | None = None,
    *,
    head_dim: int | None = None,
    order: Sequence[int] | None = None,
    pad: bool = False,
) -> WeightLoader:
    """Each rank holds whole attention heads along ``dim``: ``num_heads * head_dim`` (or one) entries.

    Args:
        dim: dimension of the heads.
        group: who shares them.
        num_heads: where given, must be divisible by the group's size, or ``pad`` be set.
        head_dim: entries per head; needed with ``order`` and ``pad``.
        order: the checkpoint's head at each place, a permutation; None keeps the checkpoint's order.
        pad: fill up with zero heads to a multiple of the group's size.

    Raises:
        ShardingError: the heads cannot be cut so.
    """
    if num_heads is not None and head_dim is not None:
        return fused_head_sharded(dim, group, (num_heads,), head_dim, orders=(order,), pad=pad)
    if order is not None or pad:
        raise ShardingError("order and pad of head_sharded need num_heads and head_dim: pass both.")
    if num_heads is not None:
        shard_size("num_heads", num_heads, group.size, degree=group.name)
    return EqualCut(dim, group, parts=1)


def fused_head_sharded(
    dim: int,
    group: ParallelGroup,
    num_heads: Sequence[int],
    head_dim: int,
    *,
    orders: Sequence[Sequence[int] | None] | None = None,
    pad: bool = False,
    storage: Storage = "separate",
) -> WeightLoader:
    """This rank's heads of each part (query, key, value), the parts joined along ``dim``.

    Args:
        dim: dimension of the heads.
        group: who shares them.
        num_heads: heads of each part. Fewer than ranks, and a divisor of their number, are held by several
            ranks each (grouped-query attention: Ainslie et al. 2023).
        head_dim: entries per head along ``dim``.
        orders: for each part the checkpoint's head at each place, a permutation; None keeps the order.
        pad: fill each part up with zero heads to a multiple of the group's size.
        storage: one checkpoint tensor per part; one tensor of the parts in turn; or one tensor with the parts
            in turn within each head.

    Raises:
        ShardingError: the heads cannot be cut so.
    """
    orders = [None] * len(num_heads) if orders is None else orders
    if len(orders) != len(num_heads):
        raise ShardingError(
            f"orders has {len(orders)} entries, which must be one per part: {len(num_heads)}."
        )
    if storage == "interleaved" and len(set(num_heads)) > 1:
        raise ShardingError(f"num_heads={tuple(num_heads)} must be equal where heads are interleaved.")
    parts = len(num_heads)
    runs: list[Run] = []
    for part, (count, order) in enumerate(zip(num_heads, orders, strict=True)):
        first = sum(num_heads[:part])
        for head in _heads_of_rank(count, group, order, pad):
            if head is None:
                run = Run(None, 0, head_dim)
            elif storage == "separate":
                run = Run(part, head * head_dim, head_dim)
            elif storage == "packed":
                run = Run(0, (first + head) * head_dim, head_dim)
            else:
                run = Run(0, (head * parts + part) * head_dim, head_dim)
            _append(runs, run)
    if all(run.source is None for run in runs):
        runs.append(Run(0, 0, 0))
    sizes = [count * head_dim for count in num_heads]
    return Cut(dim, tuple(sizes) if storage == "separate" else (sum(sizes),), tuple(runs))


def _heads_of_rank(
    count: int, group: ParallelGroup, order: Sequence[int] | None, pad: bool
) -> list[int | None]:
    """The checkpoint's heads that this rank holds, None for a head of zeros."""
    if order is not None and sorted(order) != list(range(count)):
        raise ShardingError(f"order={tuple(order)} must name each of {count} heads once.")
    heads: list[int | None] = list(range(count) if order is None else order)
    if count < group.size and group.size % count == 0:
        return [heads[group.rank_in_group * count // group.size]]
    if pad:
        heads += [None] * (-count % group.size)
    share = shard_size("num_heads", len(heads), group.size, degree=group.name)
    return heads[group.rank_in_group * share :][:share]


def _append(runs: list[Run], run: Run) -> None:
    """Add a run, joined with the one before it where they are neighbours in the file too."""
    last = runs[-1] if runs else None
    if last and last.source == run.source and (run.source is None or last.start + last.length == run.start):
        runs[-1] = Run(last.source, last.start, last.length + run.length)
    else:
        runs.append(run)
