"""Whatever stands in an argument's place, an instruction answers with its own error and the kernel's line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.sim import KernelError, simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

B = nl.bfloat16


def T(p: int = 128, n: int = 64, d: Any = nl.float32, psum: bool = False) -> Any:
    tile = nl.ndarray((p, n), d, buffer=nl.psum if psum else nl.sbuf)
    nisa.memset(tile, 0 if tile.dtype.kind == "packed" else 1 if tile.dtype.is_integer else 1.0)
    return tile


CALLS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "dma_copy": lambda: (T(), T()),
    "tensor_copy": lambda: (T(), T()),
    "memset": lambda: (T(), 1.0),
    "tensor_copy_predicated": lambda: (T(), T(), T(d=nl.uint8)),
    "nc_matmul": lambda: (T(64, 64, psum=True), T(d=B), T(d=B)),
    "nc_transpose": lambda: (T(64, 128, psum=True), T()),
    "dma_transpose": lambda: (T(64, 128), T()),
    "tensor_tensor": lambda: (T(), T(), T(), nl.add),
    "tensor_scalar": lambda: (T(), T(), nl.add, T(n=1), False, nl.multiply, 2.0),
    "tensor_reduce": lambda: (T(n=1), nl.add, T(), 1),
    "tensor_partition_reduce": lambda: (T(1), nl.add, T()),
    "tensor_scalar_cumulative": lambda: (T(), T(), nl.add, nl.add, 1.0),
    "activation": lambda: (T(), nl.exp, T(), T(n=1), T(n=1)),
    "activation_reduce": lambda: (T(), nl.exp, T(), nl.add, T(n=1)),
    "iota": lambda: (T(), [[1, 64]], 0, 1),
    "affine_select": lambda: (T(), [[1, 64]], 1, T(), 0.0, nl.equal, 0),
    "local_gather": lambda: (T(n=64), T(), T(n=4, d=nl.uint16)),
    "nc_n_gather": lambda: (T(), T(), T(d=nl.uint32)),
    "bn_stats": lambda: (T(n=6), T()),
    "bn_aggr": lambda: (T(n=2), T(n=6)),
    "tensor_tensor_scan": lambda: (T(), T(), T(), 0.0, nl.multiply, nl.add),
    "nc_stream_shuffle": lambda: (T(), T(), [0] * 32),
    "reciprocal": lambda: (T(), T()),
    "max8": lambda: (T(n=8), T()),
    "scalar_tensor_tensor": lambda: (T(), T(), nl.add, 1.0, nl.add, T()),
    "tensor_scalar_reduce": lambda: (T(), T(), nl.add, 1.0, nl.add, T(n=1)),
    "dma_compute": lambda: (T(), [T(), T()], nl.add),
    "range_select": lambda: (T(), T(), nl.less, nl.less, T(n=1), T(n=1)),
    "select_reduce": lambda: (T(), T(d=nl.uint8), T(), 0.0, T(n=1), nisa.reduce_cmd.reset_reduce),
    "nc_find_index8": lambda: (T(n=8, d=nl.uint32), T(), T(n=8)),
    "nc_match_replace8": lambda: (T(), T(), T(n=8), 0.0),
    "topk": lambda: (T(n=4), T(n=4, d=nl.uint32), T(), 4),
    "register_move": lambda: (nisa.register_alloc(), 3),
    "register_load": lambda: (nisa.register_alloc(), T(1, 1, nl.int32)),
    "register_store": lambda: (T(1, 1, nl.int32), nisa.register_alloc(2)),
}
TRN3: dict[str, Callable[[], tuple[Any, ...]]] = {
    "nc_matmul_mx": lambda: (
        T(64, 64, psum=True),
        T(d=nl.float8_e4m3fn_x4),
        T(d=nl.float8_e4m3fn_x4),
        T(d=nl.uint8),
        T(d=nl.uint8),
    ),
    "quantize_mx": lambda: (T(n=16, d=nl.float8_e4m3fn_x4), T(d=B), T(n=16, d=nl.uint8)),
    "exponential": lambda: (T(), T(), T(n=1)),
    "activate2": lambda: (T(), nl.exp, T(), 1.0, 0.0, nl.multiply, nl.add),
}
ODD: list[Callable[[], Any]] = [
    lambda: None,
    lambda: 3,
    lambda: "x",
    lambda: 2.5,
    lambda: T(n=7),
    lambda: T(5, 3),
    lambda: T(psum=True),
    lambda: T(d=nl.int32),
    lambda: T(d=nl.float8_e4m3fn_x4),
    lambda: nl.ndarray((128, 64), nl.float32, buffer=nl.hbm),
    lambda: nisa.register_alloc(1),
    lambda: nl.fmod,
    lambda: nl.power,
    lambda: [1, 2],
    lambda: T(1, 1),
    lambda: T(96, 64)[32:64],
    lambda: T().reshape((128, 8, 8)),
    lambda: True,
    lambda: np.float32(2),
]


@pytest.mark.parametrize("name", [*CALLS, *TRN3])
def test_the_calls_themselves_are_right(name: str) -> None:
    make = {**CALLS, **TRN3}[name]
    simulate(lambda: getattr(nisa, name)(*make()) and None, target="trn3")


@settings(max_examples=300)
@given(st.sampled_from([*CALLS, *TRN3]), st.integers(0, 8), st.sampled_from(range(len(ODD))))
def test_no_argument_breaks_the_simulator(name: str, position: int, odd: int) -> None:
    def kernel() -> None:
        arguments = list({**CALLS, **TRN3}[name]())
        arguments[position % len(arguments)] = ODD[odd]()
        getattr(nisa, name)(*arguments)

    try:
        simulate(kernel, target="trn3")
    except KernelError as error:
        assert error.where.file == __file__  # noqa: PT017
