"""Attention as the kernels compute it: scores in float32, a shift in whole octaves, two roundings.

Which number of octaves a kernel takes does not matter (see `window`), so the twin takes those of each row's
maximum, and one twin serves both kernels: a ring of ranks computes what one rank with all keys would.
"""

import math

import torch
from torch import Tensor

from omni_neuron.kernels.spec import Arguments, Results

QUERIES_AT_ONCE = 1024
OCTAVE = math.log(2.0)
TINY = 1e-36  # below the sum of weights of any row that has a key


def attention_twin(
    query: Tensor, keys: Tensor, values: Tensor, key_lengths: Tensor | None, scale: float
) -> Tensor:
    """Softmax(scale q.k) v.

    Args:
        query: `[N, D, Sq]`, N = batch x heads, bfloat16 or float32.
        keys: `[N, D, S]`.
        values: `[N, S, D]`.
        key_lengths: int32 `[B]`: only the first so many keys of a batch entry count; None: all.
        scale: of the scores, above 0.

    Returns:
        `[N, D, Sq]` in the dtype of values, zeros where no key counts. Rounded to it: the weights before the
        second product, and the result.
    """
    counts = None
    if key_lengths is not None:
        lengths = key_lengths.repeat_interleave(query.shape[0] // key_lengths.shape[0])
        counts = torch.arange(keys.shape[2], device=keys.device)[None] < lengths[:, None]
    return masked_attention_twin(query, keys, values, counts, scale)


def masked_attention_twin(
    query: Tensor, keys: Tensor, values: Tensor, counts: Tensor | None, scale: float
) -> Tensor:
    """`attention_twin` with a mask of the keys that count, bool `[N, S]`."""
    parts = [
        _rows(part, keys, values, counts, scale).mT for part in torch.split(query, QUERIES_AT_ONCE, dim=2)
    ]
    return torch.cat(parts, dim=2).contiguous()


def _rows(query: Tensor, keys: Tensor, values: Tensor, counts: Tensor | None, scale: float) -> Tensor:
    scores = (query.mT.float() @ keys.float()) * scale  # [N, Sq, S]
    if counts is not None:
        scores = scores.masked_fill(~counts[:, None], -math.inf)
    octaves = torch.round(scores.amax(dim=-1, keepdim=True) / OCTAVE).nan_to_num(neginf=0.0)
    weights = torch.exp(scores - octaves * OCTAVE).to(values.dtype).float()
    sums = weights.sum(dim=-1, keepdim=True)
    return (weights @ values.float() / sums.clamp_min(TINY)).to(values.dtype)


def ring_attention_twin(ranks: list[Arguments]) -> list[Results]:
    """`ring_attention_kernel` of all ranks of one ring, from the arguments of each in rank order."""
    _, _, _, key_lengths, scale, _ = ranks[0]
    keys = torch.cat([arguments[1] for arguments in ranks], dim=2)
    values = torch.cat([arguments[2] for arguments in ranks], dim=1)
    counts = None
    if key_lengths is not None:
        shard = torch.arange(keys.shape[2] // len(ranks))
        counts = (shard[None] < key_lengths[:, None]).flatten().expand(keys.shape[0], -1)
    return [(masked_attention_twin(arguments[0], keys, values, counts, scale),) for arguments in ranks]
