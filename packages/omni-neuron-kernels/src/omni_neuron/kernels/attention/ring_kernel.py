"""Attention of many ranks: queries stay, keys and values travel around the ring of a replica group.

A rank attends to the shard in hand while the next ones are on their way. Which shift serves which queries is
settled before the first step from statistics that all ranks exchange, so the sums of all shards add up and no
row is corrected between steps; heads outside the window follow the maximum of their rows instead.
"""

from typing import Any

from omni_neuron.kernels.attention.bounds import choose_paths
from omni_neuron.kernels.attention.head import Head
from omni_neuron.kernels.attention.mask import key_positions, mask_after, valid_keys
from omni_neuron.kernels.attention.paths import attend
from omni_neuron.kernels.attention.sharing import shared_heads
from omni_neuron.kernels.attention.state import new_states
from omni_neuron.kernels.attention.statistics import key_statistics, query_norms
from omni_neuron.kernels.attention.window import KEY_BLOCK, QUERY_BLOCK
from omni_neuron.kernels.limits import ceil_div
from omni_neuron.kernels.nki import ncc, nisa, nki, nl
from omni_neuron.kernels.tiles import cores, share

PREFETCHED_SHARDS = 2  # that are on their way or have come, beside the one in hand


@nki.jit
def ring_attention_kernel(
    query: Any, keys: Any, values: Any, key_lengths: Any, scale: float, replica_groups: Any
) -> Any:
    """Softmax(scale q.k) v over the keys of all ranks of a group.

    query and keys `[N, D, S]`, values `[N, S, D]`, of this rank; key_lengths int32 `[world]` or None: how
    many keys of each rank's shard count. replica_groups: a tuple of tuples of global ranks, all rings of the
    world; their order is the order of the ring. None: this rank alone. Returns `[N, D, S]`.
    """
    heads, width, queries = query.shape
    count, ranks, group = keys.shape[2], 1, None
    if replica_groups is not None:
        ranks, group = len(replica_groups[0]), ncc.ReplicaGroup(replica_groups)
    shares = shared_heads(heads, queries)
    own = [query[head] for head, _ in shares]
    statistics = _exchange_statistics(keys, key_lengths, group, ranks)
    norms = query_norms(own)
    means, extent = _load_statistics(statistics, ranks, width)
    shifts, flags = choose_paths(
        own,
        norms,
        [means[:, :, head] for head, _ in shares],
        [extent[:, head] for head, _ in shares],
        scale,
        ranks * count,
    )
    buffers = _stage(keys, values, ranks)
    # Not before: permutes are triggered from the queue of GpSimd, and hold up what stands behind them.
    for step in range(1, min(PREFETCHED_SHARDS + 1, ranks)):
        _send(buffers, step, group)
    out = nl.ndarray((heads, width, queries), values.dtype, buffer=nl.shared_hbm)
    states = [None for _ in shares]
    if ranks > 1:
        states = new_states(len(shares), queries, width)
    for step in range(ranks):
        if step > 0 and step + PREFETCHED_SHARDS < ranks:
            _send(buffers, step + PREFETCHED_SHARDS, group)
        key, value = (keys, values) if step == 0 else buffers[step % len(buffers)]
        length = _length(key_lengths, step, group)
        mask = None if length is None else mask_after(key_positions(count), length, scale)
        first, last = step == 0, step == ranks - 1
        jobs = []
        for i in range(len(shares)):
            h, starts = shares[i]
            one = Head(query[h], key[h], value[h], out[h], states[i], mask, length, scale, first, last)
            jobs.append((one, starts))
        attend(jobs, shifts, flags)
    return out


def _stage(keys: Any, values: Any, ranks: int) -> list[Any]:
    """Buffers of keys and values that travel; the first holds this rank's own. Arguments may not travel."""
    buffers: list[Any] = []
    if ranks == 1:
        return buffers
    for i in range(min(PREFETCHED_SHARDS + 1, ranks)):
        key = nl.ndarray(keys.shape, keys.dtype, buffer=nl.shared_hbm, name=f"ring_keys_{i}")
        value = nl.ndarray(values.shape, values.dtype, buffer=nl.shared_hbm, name=f"ring_values_{i}")
        buffers.append((key, value))
    count = keys.shape[2]
    first, last = share(keys.shape[0])
    for h in range(first, last):
        # In pieces, which several DMA engines carry at once.
        for start in range(0, count, QUERY_BLOCK):
            piece = nl.ds(start, min(QUERY_BLOCK, count - start))
            nisa.dma_copy(buffers[0][1][h, piece], values[h, piece])
        nisa.dma_copy(buffers[0][0][h], keys[h])
    if cores()[1] > 1:
        nisa.core_barrier(buffers[0][0], (0, 1))
        nisa.core_barrier(buffers[0][1], (0, 1))
    return buffers


def _send(buffers: list[Any], step: int, group: Any) -> None:
    """The permute whose result is attended at `step`; it overwrites what was attended longest ago."""
    sources, targets = buffers[(step - 1) % len(buffers)], buffers[step % len(buffers)]
    ncc.collective_permute_implicit(
        [sources[0], sources[1]], [targets[0], targets[1]], group, channel_ids=[0, 1]
    )


def _length(key_lengths: Any, step: int, group: Any) -> Any:
    """How many keys of the shard in hand count, `[128, 1]`; None where all count."""
    if key_lengths is None:
        return None
    whose = 0
    if group is not None:
        whose = ncc.collective_permute_implicit_current_processing_rank_id(step, group)
    return valid_keys(key_lengths, whose)


def _exchange_statistics(keys: Any, key_lengths: Any, group: Any, ranks: int) -> Any:
    """Statistics of all ranks' keys in HBM, `[ranks (D + 2), N, blocks]`: means, radii, absences."""
    heads, width, count = keys.shape
    first, last = share(heads)
    length = _length(key_lengths, 0, group)
    shape = (width + 2, heads, ceil_div(count, KEY_BLOCK))
    own = nl.ndarray(shape, nl.float32, buffer=nl.shared_hbm, name="own_statistics")
    if last > first:
        mine = nl.ds(first, last - first)
        means, extent = key_statistics([keys[h] for h in range(first, last)], [length] * (last - first))
        nisa.dma_copy(own[0:width, mine], means)
        outer = own[width : width + 2, mine]
        nisa.dma_copy(outer.permute((1, 0, 2)), extent)
    if cores()[1] > 1:
        nisa.core_barrier(own, (0, 1))
    if ranks == 1:
        return own
    shape = (ranks * (width + 2), heads, ceil_div(count, KEY_BLOCK))
    every = nl.ndarray(shape, nl.float32, buffer=nl.shared_hbm, name="statistics")
    ncc.all_gather([own], [every], group, 0)
    return every


def _load_statistics(statistics: Any, ranks: int, width: int) -> tuple[Any, Any]:
    """Tiles of means `[D, ranks, N, blocks]`, and of radii and absences `[1, N, 2, ranks x blocks]`."""
    _, heads, blocks = statistics.shape
    rows = statistics.reshape((ranks, width + 2, heads, blocks))
    means = nl.ndarray((width, ranks, heads, blocks), nl.float32)
    nisa.dma_copy(means, rows[:, 0:width].permute((1, 0, 2, 3)))
    extent = nl.ndarray((1, heads, 2, ranks, blocks), nl.float32)
    nisa.dma_copy(extent, rows[:, width : width + 2].permute((2, 1, 0, 3)))
    return means, extent.reshape((1, heads, 2, ranks * blocks))
