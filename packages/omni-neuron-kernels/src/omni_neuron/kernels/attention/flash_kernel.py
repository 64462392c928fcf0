"""Attention of one rank: every query to every key, without a causal mask."""

from typing import Any

from omni_neuron.kernels.attention.bounds import choose_paths
from omni_neuron.kernels.attention.head import Head
from omni_neuron.kernels.attention.mask import key_positions, mask_after, valid_keys
from omni_neuron.kernels.attention.paths import attend
from omni_neuron.kernels.attention.sharing import shared_heads
from omni_neuron.kernels.attention.statistics import key_statistics, query_norms
from omni_neuron.kernels.nki import nki, nl


@nki.jit
def flash_attention_kernel(query: Any, keys: Any, values: Any, key_lengths: Any, scale: float) -> Any:
    """Softmax(scale q.k) v for each head.

    query `[N, D, Sq]`, keys `[N, D, S]`, values `[N, S, D]` with N = batch x heads; key_lengths int32 `[B]`
    or None: only the first so many keys of a batch entry count. Returns `[N, D, Sq]`.
    """
    heads, width, queries = query.shape
    out = nl.ndarray((heads, width, queries), values.dtype, buffer=nl.shared_hbm)
    count = keys.shape[2]
    shares = shared_heads(heads, queries)
    if len(shares) == 0:
        return out
    lengths: list[Any] = []
    masks: list[Any] = []
    known = -1
    for head, _ in shares:
        entry = 0 if key_lengths is None else head * key_lengths.shape[0] // heads
        if key_lengths is None:
            lengths.append(None)
            masks.append(None)
        elif entry == known:
            lengths.append(lengths[len(lengths) - 1])
            masks.append(masks[len(masks) - 1])
        else:
            lengths.append(valid_keys(key_lengths, entry))
            masks.append(mask_after(key_positions(count), lengths[len(lengths) - 1], scale))
        known = entry
    own = [query[head] for head, _ in shares]
    means, extent = key_statistics([keys[head] for head, _ in shares], lengths)
    shifts, flags = choose_paths(
        own,
        query_norms(own),
        [means[:, i : i + 1] for i in range(len(shares))],
        [extent[:, i] for i in range(len(shares))],
        scale,
        count,
    )
    jobs = []
    for i in range(len(shares)):
        h, starts = shares[i]
        one = Head(query[h], keys[h], values[h], out[h], None, masks[i], lengths[i], scale, True, True)
        jobs.append((one, starts))
    attend(jobs, shifts, flags)
    return out
