"""Bytes that one DiT forward moves through the memory of a rank."""

from __future__ import annotations

import math
from dataclasses import dataclass

from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.communication import BF16, kv_bytes
from omni_neuron.distributed.planner.flops import head_share, local_tokens
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.parameters import block_matrices, dit_parameters_per_rank

# Query rows that stay on chip while all keys and values pass by.
QUERY_ROWS = 2048


@dataclass(frozen=True)
class MemoryTraffic:
    """Bytes of one forward: weights and operands of linear layers, of attention, and of all between them."""

    linear: float
    attention: float
    elementwise: float

    @property
    def total(self) -> float:
        return self.linear + self.attention + self.elementwise


def memory_traffic(job: Job, choice: Choice) -> MemoryTraffic:
    """Reads and writes of one forward for one guidance branch, each tensor once per operation that touches
    it.

    With h the hidden tensor of a rank and T tensor-parallel ranks, the linear layers of a block move
    (8 + 8 / T) h and 4 h f / (d T); norms with modulation, residuals, query-key norms and RoPE move
    15 h + 6 h / T. Stored fp8 matrices are read once, written as bf16 and read again.
    """
    layout, dit = choice.layout, job.model.dit
    hidden = local_tokens(job, layout.cp) * dit.width * BF16
    tp = layout.tp
    blocks = dit.layers * block_matrices(dit) / tp
    rest = dit_parameters_per_rank(dit, tp) - blocks
    dequantised = 5 if choice.weight_dtype == "fp8" else BF16
    linear = hidden * (8 + 8 / tp) + 4 * hidden * dit.ffn / dit.width / tp
    return MemoryTraffic(
        linear=blocks * dequantised + rest * BF16 + dit.layers * linear,
        attention=dit.layers * (_self_attention(job, choice) + 2 * hidden / tp),
        elementwise=dit.layers * hidden * (15 + 6 / tp),
    )


def _self_attention(job: Job, choice: Choice) -> float:
    """Queries in, output out, and all keys and values once for every ``QUERY_ROWS`` queries of a head."""
    layout, dit = choice.layout, job.model.dit
    queries = local_tokens(job, layout.ring)
    share = head_share(dit.heads, layout.tp, layout.ulysses)
    passes = math.ceil(queries / QUERY_ROWS)
    return 2 * queries * dit.width * share * BF16 + passes * layout.ring * kv_bytes(job, choice)
