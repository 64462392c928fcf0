"""Context parallelism: the token sequence cut over ranks, and attention that sees all of it."""

from omni_neuron.distributed.context_parallel.attention import RingFn, context_parallel_attention
from omni_neuron.distributed.context_parallel.key_value_gather import AttentionFn, gathered_attention
from omni_neuron.distributed.context_parallel.online_softmax import (
    AttentionWithLse,
    OnlineSoftmax,
    attention_with_lse,
)
from omni_neuron.distributed.context_parallel.ring import ring_attention
from omni_neuron.distributed.context_parallel.sequence import (
    gather_sequence,
    padded_length,
    sequence_key_mask,
    split_sequence,
)
from omni_neuron.distributed.context_parallel.ulysses import ulysses_attention, ulysses_heads

__all__ = [
    "AttentionFn",
    "AttentionWithLse",
    "OnlineSoftmax",
    "RingFn",
    "attention_with_lse",
    "context_parallel_attention",
    "gather_sequence",
    "gathered_attention",
    "padded_length",
    "ring_attention",
    "sequence_key_mask",
    "split_sequence",
    "ulysses_attention",
    "ulysses_heads",
]
