"""`nki.isa`: the instructions, with the argument order of NKI 0.6."""

from typing import Any

from omni_neuron.sim.nki.isa import enums as constants
from omni_neuron.sim.nki.isa.activation import activate2, activation, activation_reduce, exponential
from omni_neuron.sim.nki.isa.copies import memset, nc_stream_shuffle, tensor_copy, tensor_copy_predicated
from omni_neuron.sim.nki.isa.cores import core_barrier, sendrecv
from omni_neuron.sim.nki.isa.dma import dma_compute, dma_copy, dma_transpose
from omni_neuron.sim.nki.isa.elementwise import reciprocal, scalar_tensor_tensor, tensor_scalar, tensor_tensor
from omni_neuron.sim.nki.isa.enums import (
    dge_mode,
    dma_engine,
    engine,
    get_nc_version,
    gpsimd_engine,
    matmul_perf_mode,
    nc_version,
    oob_mode,
    reduce_cmd,
    scalar_engine,
    sync_engine,
    tensor_engine,
    unknown_engine,
    vector_engine,
)  # fmt: skip
from omni_neuron.sim.nki.isa.gpsimd import (
    local_gather,
    nc_n_gather,
    nonzero_with_count,
    sequence_bounds,
    tensor_partition_reduce,
)
from omni_neuron.sim.nki.isa.instruction import NkiInstruction
from omni_neuron.sim.nki.isa.matmul import nc_matmul, nc_transpose
from omni_neuron.sim.nki.isa.mx import nc_matmul_mx, quantize_mx
from omni_neuron.sim.nki.isa.random import dropout, rand2, rand_get_state, rand_set_state, rng, set_rng_seed
from omni_neuron.sim.nki.isa.reductions import (
    bn_aggr,
    bn_stats,
    tensor_reduce,
    tensor_scalar_cumulative,
    tensor_scalar_reduce,
    tensor_tensor_scan,
)  # fmt: skip
from omni_neuron.sim.nki.isa.registers import register_alloc, register_load, register_move, register_store
from omni_neuron.sim.nki.isa.search import max8, nc_find_index8, nc_match_replace8, topk
from omni_neuron.sim.nki.isa.selection import affine_select, iota, range_select, select_reduce
from omni_neuron.sim.nki.removed import ISA, missing


def __getattr__(name: str) -> Any:
    """Names of older versions say what took their place."""
    raise missing("nki.isa", name, ISA)


__all__ = [
    "NkiInstruction", "activate2", "activation", "activation_reduce", "affine_select", "bn_aggr",
    "bn_stats", "constants", "core_barrier", "dge_mode", "dma_compute", "dma_copy", "dma_engine",
    "dma_transpose", "dropout", "engine", "exponential", "get_nc_version", "gpsimd_engine", "iota",
    "local_gather", "matmul_perf_mode", "max8", "memset", "nc_find_index8", "nc_match_replace8",
    "nc_matmul", "nc_matmul_mx", "nc_n_gather", "nc_stream_shuffle", "nc_transpose", "nc_version",
    "nonzero_with_count", "oob_mode", "quantize_mx", "rand2", "rand_get_state", "rand_set_state",
    "range_select", "reciprocal", "reduce_cmd", "register_alloc", "register_load", "register_move",
    "register_store", "rng", "scalar_engine", "scalar_tensor_tensor", "select_reduce", "sendrecv",
    "sequence_bounds", "set_rng_seed", "sync_engine", "tensor_copy", "tensor_copy_predicated",
    "tensor_engine", "tensor_partition_reduce", "tensor_reduce", "tensor_scalar",
    "tensor_scalar_cumulative", "tensor_scalar_reduce", "tensor_tensor", "tensor_tensor_scan", "topk",
    "unknown_engine", "vector_engine",
]  # fmt: skip
