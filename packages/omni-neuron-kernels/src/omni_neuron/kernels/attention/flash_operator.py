"""Attention of one rank for models: the kernel where it can run, its twin elsewhere."""

import math

import torch
from torch import Tensor

from omni_neuron.kernels.attention.twin import attention_twin
from omni_neuron.kernels.attention.window import KEY_BLOCK
from omni_neuron.kernels.gate import can_run_kernel
from omni_neuron.kernels.limits import DTYPES, PARTITIONS
from omni_neuron.kernels.operator import kernel_operator, launch
from omni_neuron.kernels.shapes import require_dims, require_shape
from omni_neuron.runtime.errors import InputError

SOURCE = "omni_neuron.kernels.attention.flash_kernel:flash_attention_kernel"
MAX_HEADS = 512
MAX_KEYS = 131_072
MAX_BLOCKS = 256  # of 2,048 keys, of all ranks: the means of more do not fit a bank of PSUM
ROOM = 190_000  # bytes of a partition of SBUF for what `bounds` keeps of all heads


def fits_flash_attention(
    query: Tensor, keys: Tensor, values: Tensor, key_lengths: Tensor | None, scale: float, ranks: int = 1
) -> bool:
    """The kernel's gate, with the arguments of `flash_attention` and the number of ranks with keys.

    bf16 or fp32, all of one dtype; D up to 128; up to 512 heads of all batch entries; up to 131,072 queries
    and keys, 524,288 keys of all ranks; scale above 0, finite; key_lengths int32, one for each batch entry.
    SBUF must hold the bounds of all heads: 14 bytes for each head and 128 queries, 24 for each head, rank and
    2,048 keys, and 8 for each length and 128 keys (40 heads of 32,760 queries and keys fit).
    """
    if query.ndim != 3 or keys.ndim != 3 or values.ndim != 3:
        return False
    heads, dim, queries = query.shape
    blocks = ranks * math.ceil(keys.shape[2] / KEY_BLOCK)
    lengths = 0 if key_lengths is None else key_lengths.numel()
    room = 14 * heads * math.ceil(queries / 128) + 24 * heads * blocks + lengths * keys.shape[2] // 16
    return (
        query.dtype in DTYPES
        and query.dtype == keys.dtype == values.dtype
        and keys.shape[:2] == (heads, dim)
        and values.shape == (heads, keys.shape[2], dim)
        and 0 < heads <= MAX_HEADS
        and 0 < dim <= PARTITIONS
        and 0 < queries <= MAX_KEYS
        and 0 < keys.shape[2] <= MAX_KEYS
        and blocks <= MAX_BLOCKS
        and room <= ROOM
        and 0 < scale < math.inf
        and (
            key_lengths is None
            or (
                key_lengths.dtype == torch.int32
                and key_lengths.ndim == 1
                and key_lengths.shape[0] > 0
                and heads % key_lengths.shape[0] == 0
            )
        )
    )


def _fake(query: Tensor, keys: Tensor, values: Tensor, key_lengths: Tensor | None, scale: float) -> Tensor:
    return values.new_empty(query.shape)


@kernel_operator(_fake)
def _flash_attention(
    query: Tensor, keys: Tensor, values: Tensor, key_lengths: Tensor | None, scale: float
) -> Tensor:
    result: Tensor = launch(SOURCE, query, keys, values, key_lengths, scale)
    return result


def require_attention_shapes(query: Tensor, keys: Tensor, values: Tensor) -> None:
    """InputError where query `[N, D, Sq]`, keys `[N, D, S]` and values `[N, S, D]` do not fit."""
    require_dims("query", query, "[N, D, Sq]")
    require_dims("keys", keys, "[N, D, S]")
    heads, dim, count = query.shape[0], query.shape[1], keys.shape[2]
    require_shape("keys", keys, (heads, dim, count))
    require_shape("values", values, (heads, count, dim))


def flash_attention(
    query: Tensor, keys: Tensor, values: Tensor, key_lengths: Tensor | None, scale: float
) -> Tensor:
    """Softmax(scale q.k) v over all keys, or the first of them; without a causal mask.

    Args:
        query: `[N, D, Sq]`, N = batch x heads, bfloat16 or float32: as the projection kernel writes it.
        keys: `[N, D, S]`, the dtype of query.
        values: `[N, S, D]`, the dtype of query.
        key_lengths: int32 `[B]` where N is a multiple of B: only the first so many keys of a batch entry
            count. What stands behind them has no influence, but must be finite, as must its scores. None: all
            count.
        scale: of the scores, above 0.

    Returns:
        `[N, D, Sq]` in the dtype of query, as the output projection takes it; zeros where no key counts.
        Scores and sums are float32; rounded are the weights before the second product, and the result. The
        kernel computes it where `can_run_kernel` and `fits_flash_attention` say so, its twin elsewhere.
        InputError where the shapes do not fit. No row is lost, for |q| |k| scale up to 4.6e7 and values up to
        8.9e6: `window` says why.
    """
    require_attention_shapes(query, keys, values)
    if key_lengths is not None:
        require_dims("key_lengths", key_lengths, "[B]")
        if key_lengths.shape[0] == 0 or query.shape[0] % key_lengths.shape[0]:
            raise InputError(
                f"key_lengths has {key_lengths.shape[0]} entries: their number must divide the "
                f"{query.shape[0]} heads of query."
            )
    if can_run_kernel(query) and fits_flash_attention(query, keys, values, key_lengths, scale):
        return _flash_attention(query, keys, values, key_lengths, scale)
    return attention_twin(query, keys, values, key_lengths, scale)
