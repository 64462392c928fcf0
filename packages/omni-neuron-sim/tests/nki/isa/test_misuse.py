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


def tile(p: int = 128, n: int = 64, d: Any = nl.float32, psum: bool = False) -> Any:
    made = nl.ndarray((p, n), d, buffer=nl.psum if psum else nl.sbuf)
    nisa.memset(made, 0 if made.dtype.kind == "packed" else 1 if made.dtype.is_integer else 1.0)
    return made


CALLS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "dma_copy": lambda: (tile(), tile()),
    "tensor_copy": lambda: (tile(), tile()),
    "memset": lambda: (tile(), 1.0),
    "tensor_copy_predicated": lambda: (tile(), tile(), tile(d=nl.uint8)),
    "nc_matmul": lambda: (tile(64, 64, psum=True), tile(d=B), tile(d=B)),
    "nc_transpose": lambda: (tile(64, 128, psum=True), tile()),
    "dma_transpose": lambda: (tile(64, 128), tile()),
    "tensor_tensor": lambda: (tile(), tile(), tile(), nl.add),
    "tensor_scalar": lambda: (tile(), tile(), nl.add, tile(n=1), False, nl.multiply, 2.0),
    "tensor_reduce": lambda: (tile(n=1), nl.add, tile(), 1),
    "tensor_partition_reduce": lambda: (tile(1), nl.add, tile()),
    "tensor_scalar_cumulative": lambda: (tile(), tile(), nl.add, nl.add, 1.0),
    "activation": lambda: (tile(), nl.exp, tile(), tile(n=1), tile(n=1)),
    "activation_reduce": lambda: (tile(), nl.exp, tile(), nl.add, tile(n=1)),
    "iota": lambda: (tile(), [[1, 64]], 0, 1),
    "affine_select": lambda: (tile(), [[1, 64]], 1, tile(), 0.0, nl.equal, 0),
    "local_gather": lambda: (tile(n=64), tile(), tile(n=4, d=nl.uint16)),
    "nc_n_gather": lambda: (tile(), tile(), tile(d=nl.uint32)),
    "bn_stats": lambda: (tile(n=6), tile()),
    "bn_aggr": lambda: (tile(n=2), tile(n=6)),
    "tensor_tensor_scan": lambda: (tile(), tile(), tile(), 0.0, nl.multiply, nl.add),
    "nc_stream_shuffle": lambda: (tile(), tile(), [0] * 32),
    "reciprocal": lambda: (tile(), tile()),
    "max8": lambda: (tile(n=8), tile()),
    "scalar_tensor_tensor": lambda: (tile(), tile(), nl.add, 1.0, nl.add, tile()),
    "tensor_scalar_reduce": lambda: (tile(), tile(), nl.add, 1.0, nl.add, tile(n=1)),
    "dma_compute": lambda: (tile(), [tile(), tile()], nl.add),
    "range_select": lambda: (tile(), tile(), nl.less, nl.less, tile(n=1), tile(n=1)),
    "select_reduce": lambda: (tile(), tile(d=nl.uint8), tile(), 0.0, tile(n=1), nisa.reduce_cmd.reset_reduce),
    "nc_find_index8": lambda: (tile(n=8, d=nl.uint32), tile(), tile(n=8)),
    "nc_match_replace8": lambda: (tile(), tile(), tile(n=8), 0.0),
    "topk": lambda: (tile(n=4), tile(n=4, d=nl.uint32), tile(), 4),
    "register_move": lambda: (nisa.register_alloc(), 3),
    "register_load": lambda: (nisa.register_alloc(), tile(1, 1, nl.int32)),
    "register_store": lambda: (tile(1, 1, nl.int32), nisa.register_alloc(2)),
}
TRN3: dict[str, Callable[[], tuple[Any, ...]]] = {
    "nc_matmul_mx": lambda: (
        tile(64, 64, psum=True),
        tile(d=nl.float8_e4m3fn_x4),
        tile(d=nl.float8_e4m3fn_x4),
        tile(d=nl.uint8),
        tile(d=nl.uint8),
    ),
    "quantize_mx": lambda: (tile(n=16, d=nl.float8_e4m3fn_x4), tile(d=B), tile(n=16, d=nl.uint8)),
    "exponential": lambda: (tile(), tile(), tile(n=1)),
    "activate2": lambda: (tile(), nl.exp, tile(), 1.0, 0.0, nl.multiply, nl.add),
}
ODD: list[Callable[[], Any]] = [
    lambda: None,
    lambda: 3,
    lambda: "x",
    lambda: 2.5,
    lambda: tile(n=7),
    lambda: tile(5, 3),
    lambda: tile(psum=True),
    lambda: tile(d=nl.int32),
    lambda: tile(d=nl.float8_e4m3fn_x4),
    lambda: nl.ndarray((128, 64), nl.float32, buffer=nl.hbm),
    lambda: nisa.register_alloc(1),
    lambda: nl.fmod,
    lambda: nl.power,
    lambda: [1, 2],
    lambda: tile(1, 1),
    lambda: tile(96, 64)[32:64],
    lambda: tile().reshape((128, 8, 8)),
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
