"""`nki.language`: tensors, dtypes, operators, ranges, program ids."""

from typing import Any

from omni_neuron.sim.execution.kernel_object import NKIObject
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.language.creation import (
    empty_like,
    fp32,
    full,
    ndarray,
    ones,
    rand,
    shared_constant,
    shared_identity_matrix,
    tile_size,
    zeros,
    zeros_like,
)  # fmt: skip
from omni_neuron.sim.nki.language.functions import (
    broadcast_to,
    dropout,
    expand_dims,
    gather_flattened,
    load,
    matmul,
    mean,
    random_seed,
    rms_norm,
    softmax,
    store,
    transpose,
    var,
    where,
)  # fmt: skip
from omni_neuron.sim.nki.language.objects import (
    affine_range,
    device_print,
    ds,
    dynamic_range,
    fori_loop,
    no_reorder,
    num_programs,
    program_id,
    program_ndim,
    sequential_range,
    static_range,
    while_loop,
)  # fmt: skip
from omni_neuron.sim.nki.language.operators import OPERATORS
from omni_neuron.sim.nki.removed import LANGUAGE, missing
from omni_neuron.sim.numerics.formats import (
    bfloat16,
    bool_,
    float4_e2m1fn_x4,
    float8_e4m3,
    float8_e4m3fn,
    float8_e4m3fn_x4,
    float8_e5m2,
    float8_e5m2_x4,
    float8_e8m0fnu,
    float16,
    float32,
    int8,
    int16,
    int32,
    tfloat32,
    uint8,
    uint16,
    uint32,
)  # fmt: skip

sbuf, psum = MemorySpace.sbuf, MemorySpace.psum
hbm = private_hbm = MemorySpace.private_hbm
shared_hbm = MemorySpace.shared_hbm


def __getattr__(name: str) -> Any:
    """Every operator by its name: nl.add, nl.exp, ..."""
    if name in OPERATORS:
        return OPERATORS[name]
    raise missing("nki.language", name, LANGUAGE)


def __dir__() -> list[str]:
    return sorted([*__all__, *OPERATORS])


__all__ = [
    "NKIObject", "NkiTensor", "affine_range", "bfloat16", "bool_", "broadcast_to", "device_print",
    "dropout", "ds", "dynamic_range", "empty_like", "expand_dims", "float16", "float32",
    "float4_e2m1fn_x4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3fn_x4", "float8_e5m2",
    "float8_e5m2_x4", "float8_e8m0fnu", "fori_loop", "fp32", "full", "gather_flattened", "hbm", "int16",
    "int32", "int8", "load", "matmul", "mean", "ndarray", "no_reorder", "num_programs", "ones",
    "private_hbm", "program_id", "program_ndim", "psum", "rand", "random_seed", "rms_norm", "sbuf",
    "sequential_range", "shared_constant", "shared_hbm", "shared_identity_matrix", "softmax",
    "static_range", "store", "tfloat32", "tile_size", "transpose", "uint16", "uint32", "uint8", "var",
    "where", "while_loop", "zeros", "zeros_like",
]  # fmt: skip
