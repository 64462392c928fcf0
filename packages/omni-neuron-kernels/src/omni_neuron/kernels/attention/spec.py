"""Flash attention and ring attention in the catalogue."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from omni_neuron.kernels.attention.flash_operator import SOURCE as FLASH_SOURCE
from omni_neuron.kernels.attention.ring_operator import SOURCE as RING_SOURCE
from omni_neuron.kernels.attention.twin import attention_twin, ring_attention_twin
from omni_neuron.kernels.dtypes import dtype_name
from omni_neuron.kernels.spec import Arguments, Case, KernelSpec, Results, counted, each_rank

LARGEST_LOGIT = 4.0
BF16, FP32 = torch.bfloat16, torch.float32


def attention_oracle(
    query: Tensor, keys: Tensor, values: Tensor, key_lengths: Tensor | None, scale: float
) -> Tensor:
    """`[N, D, Sq]` in float64; zeros where no key counts."""
    scores = scale * query.mT.double() @ keys.double()
    if key_lengths is not None:
        lengths = key_lengths.repeat_interleave(len(query) // len(key_lengths))
        hidden = torch.arange(keys.shape[2])[None] >= lengths[:, None]
        scores = scores.masked_fill(hidden[:, None], -math.inf)
    return (scores.softmax(dim=-1).nan_to_num() @ values.double()).mT


def ring_attention_oracle(ranks: Sequence[Arguments]) -> list[Results]:
    """The whole sequence at once in float64, of all ranks in rank order."""
    _, _, _, key_lengths, scale, _ = ranks[0]
    size = ranks[0][1].shape[2]
    kept = [size] * len(ranks) if key_lengths is None else key_lengths.tolist()
    keys = torch.cat([a[1][:, :, :n] for a, n in zip(ranks, kept, strict=True)], dim=2)
    values = torch.cat([a[2][:, :n] for a, n in zip(ranks, kept, strict=True)], dim=1)
    return [(attention_oracle(a[0], keys, values, None, scale),) for a in ranks]


def drawn(
    ranks: int, heads: int, queries: int, keys: int, dim: int, dtype: torch.dtype
) -> tuple[list[tuple[Tensor, Tensor, Tensor]], float]:
    """Normal queries, keys and values of each rank, and a scale that makes 4 of the largest logit."""
    generator = torch.Generator().manual_seed(heads + queries)
    shapes = (heads, dim, queries), (heads, dim, keys), (heads, keys, dim)
    made = [
        tuple(torch.randn(shape, generator=generator).to(dtype) for shape in shapes) for _ in range(ranks)
    ]
    every = torch.cat([keys for _, keys, _ in made], dim=2).float()
    largest = max(float((query.mT.float() @ every).abs().max()) for query, _, _ in made)
    return [(q, k, v) for q, k, v in made], LARGEST_LOGIT / largest


def flash_case(
    heads: int,
    queries: int,
    keys: int,
    dim: int = 128,
    dtype: torch.dtype = BF16,
    lengths: tuple[int, ...] | None = None,
) -> Case:
    """One rank; `lengths` are those of the batch entries."""
    (tensors,), scale = drawn(1, heads, queries, keys, dim, dtype)
    title = f"{counted(heads, 'head')}, {queries} queries, {keys} keys, d={dim}, {dtype_name(dtype)}"
    table = None if lengths is None else torch.tensor(lengths, dtype=torch.int32)
    title += "" if lengths is None else f", {lengths} count"
    return Case(title, ((*tensors, table, scale),), 4 * heads * queries * keys * dim)


def ring_case(
    order: tuple[int, ...],
    heads: int,
    shard: int,
    dim: int = 128,
    dtype: torch.dtype = BF16,
    lengths: tuple[int, ...] | None = None,
) -> Case:
    """A ring in which keys travel in `order`; `lengths` are those of the ranks' shards."""
    ranks = len(order)
    tensors, scale = drawn(ranks, heads, shard, shard, dim, dtype)
    title = f"ring {order}, {counted(heads, 'head')}, {shard} keys each, d={dim}, {dtype_name(dtype)}"
    table = None if lengths is None else torch.tensor(lengths, dtype=torch.int32)
    title += "" if lengths is None else f", {lengths} count"
    arguments = tuple((*one, table, scale, (order,)) for one in tensors)
    return Case(title, arguments, 4 * heads * (ranks * shard) ** 2 * dim)


ROUNDINGS = ("weights", "output")

FLASH_ATTENTION = KernelSpec(
    name="flash_attention",
    summary="Attention of one rank, non-causal, with key lengths",
    source=FLASH_SOURCE,
    limits=(
        "bf16 or fp32, query, keys and values of one dtype",
        "D up to 128",
        "up to 131,072 queries and keys, 512 heads",
        "bounds of all heads within SBUF: 40 heads of 32,760 queries and keys are",
        "scale above 0, finite",
    ),
    roundings=ROUNDINGS,
    twin=each_rank(attention_twin),
    oracle=each_rank(attention_oracle),
    cases=lambda: (
        flash_case(1, 4096, 4096),
        flash_case(10, 512, 1560),
        flash_case(5, 777, 2500),
        flash_case(2, 130, 2300, 64, lengths=(2200, 1)),
        flash_case(3, 1, 1),
        flash_case(2, 200, 333, 128, FP32),
    ),
    roofline=lambda: (flash_case(1, 4096, 4096), flash_case(10, 4096, 4096), flash_case(1, 1024, 32_760)),
)

RING_ATTENTION = KernelSpec(
    name="ring_attention",
    summary="Attention of a ring of ranks that loses no row",
    source=RING_SOURCE,
    limits=(
        "as flash_attention, for the shard of each rank",
        "up to 524,288 keys of all ranks",
        "shards of one length, key lengths for each rank",
    ),
    roundings=ROUNDINGS,
    twin=lambda ranks: ring_attention_twin(list(ranks)),
    oracle=ring_attention_oracle,
    cases=lambda: (
        ring_case((0, 1, 2, 3), 2, 1024),
        ring_case((3, 1, 0, 2), 5, 200),
        ring_case((1, 0), 1, 700, lengths=(700, 123)),
        ring_case((2, 0, 1), 3, 130, 64, lengths=(130, 0, 77)),
        ring_case((0, 1, 2, 3, 4, 5, 6, 7), 1, 256),
        ring_case((0, 2, 1), 1, 150, 128, FP32),
    ),
    roofline=lambda: (ring_case((0, 1, 2, 3), 10, 1024), ring_case((0, 1, 2, 3), 2, 4096)),
)
