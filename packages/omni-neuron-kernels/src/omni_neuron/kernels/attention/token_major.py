"""Both kernels for models that keep tokens before heads: tensors are turned on the way in and out."""

from torch import Tensor

from omni_neuron.kernels.attention.flash_operator import flash_attention
from omni_neuron.kernels.attention.ring_operator import ring_attention


def token_major_attention(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """`flash_attention`.

    Args:
        query: `[B, Sq, H, D]`, bfloat16 or float32.
        key, value: `[B, S, H, D]`, the dtype of query.
        scale: of the scores, above 0.

    Returns:
        `[B, Sq, H, D]` in the dtype of query.
    """
    attended = flash_attention(_columns(query), _columns(key), _rows(value), None, scale)
    return _tokens_first(attended, query.shape[0])


def token_major_ring_attention(
    query: Tensor, key: Tensor, value: Tensor, key_lengths: Tensor | None, scale: float, group_name: str
) -> Tensor:
    """`ring_attention`.

    Args:
        query, key, value: `[B, S, H, D]` of this rank, bfloat16 or float32.
        key_lengths, scale, group_name: as `ring_attention` takes them.

    Returns:
        `[B, S, H, D]` in the dtype of query.
    """
    attended = ring_attention(_columns(query), _columns(key), _rows(value), key_lengths, scale, group_name)
    return _tokens_first(attended, query.shape[0])


def _columns(x: Tensor) -> Tensor:
    """`[B, S, H, D] -> [B H, D, S]`"""
    return x.permute(0, 2, 3, 1).flatten(0, 1).contiguous()


def _rows(x: Tensor) -> Tensor:
    """`[B, S, H, D] -> [B H, S, D]`"""
    return x.transpose(1, 2).flatten(0, 1).contiguous()


def _tokens_first(attended: Tensor, batch: int) -> Tensor:
    """`[B H, D, S] -> [B, S, H, D]`"""
    heads, dim, queries = attended.shape
    return attended.reshape(batch, heads // batch, dim, queries).permute(0, 3, 1, 2)
