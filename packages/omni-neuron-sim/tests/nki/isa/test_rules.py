# ruff: noqa: E501 - one case a line
"""Every rule of the machine: a kernel that keeps it runs, and the same kernel with one edit is refused by name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import KernelError, simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

X = np.ones((128, 512), np.float32)
F32, BF16 = nl.float32, nl.bfloat16


def tile(p: int = 128, n: int = 64, dtype: Any = F32, psum: bool = False, **where: Any) -> Any:
    """A tile of ones."""
    made = nl.ndarray((p, n), dtype, buffer=nl.psum if psum else nl.sbuf, **where)
    if made.dtype.kind == "packed":
        nisa.memset(made, 0)
    else:
        nisa.memset(made, 1 if made.dtype.is_integer else 1.0)
    return made


def blank(p: int = 128, n: int = 64, dtype: Any = F32, psum: bool = False, **where: Any) -> Any:
    return nl.ndarray((p, n), dtype, buffer=nl.psum if psum else nl.sbuf, **where)


def hbm(p: int = 128, n: int = 64, dtype: Any = F32) -> Any:
    return nl.zeros((p, n), dtype, buffer=nl.hbm)


def matmul(
    k: int = 128, m: int = 64, n: int = 64, dst: Any = F32, a: Any = BF16, b: Any = BF16, **options: Any
) -> None:
    nisa.nc_matmul(blank(m, n, dst, psum=True), tile(k, m, a), tile(k, n, b), **options)


def register(value: int) -> Any:
    return nisa.register_alloc(value)


def chained(between: bool) -> None:
    """A chain of reductions, with an instruction between that leaves the registers unspecified."""
    nisa.tensor_scalar_reduce(blank(), tile(), nl.add, 0.0, nl.maximum)
    if between:
        nisa.select_reduce(blank(), tile(dtype=nl.uint8), tile(), 0.0)
    nisa.tensor_scalar_reduce(
        blank(), tile(), nl.add, 0.0, nl.maximum, blank(n=1), reduce_cmd=nisa.reduce_cmd.reduce
    )


Case = tuple[str, str, Callable[[], Any], Callable[[], Any]]
CASES: list[Case] = [
    # memories
    ("memory-space", "engines reach SBUF and PSUM", lambda: nisa.tensor_copy(blank(), tile()), lambda: nisa.tensor_copy(blank(), hbm())),
    ("memory-space", "must be in sbuf or private_hbm or shared_hbm", lambda: nisa.dma_copy(hbm(), tile()), lambda: nisa.dma_copy(hbm(), tile(psum=True))),
    ("memory-space", "GpSimd does not reach PSUM", lambda: nisa.iota(blank(), [[1, 64]]), lambda: nisa.iota(blank(psum=True), [[1, 64]])),
    ("memory-space", "GpSimd does not reach PSUM", lambda: nisa.tensor_copy(blank(), tile(psum=True)), lambda: nisa.tensor_copy(blank(), tile(psum=True), engine=nisa.gpsimd_engine)),
    ("memory-space", "are both in PSUM", lambda: nisa.tensor_tensor(blank(), tile(psum=True), tile(), nl.add), lambda: nisa.tensor_tensor(blank(), tile(psum=True), tile(psum=True), nl.add)),
    ("memory-space", "dst = .* must be in psum", lambda: nisa.nc_matmul(blank(64, 64, psum=True), tile(), tile()), lambda: nisa.nc_matmul(blank(64, 64), tile(), tile())),
    ("memory-space", "moving = .* must be in sbuf", lambda: nisa.nc_matmul(blank(64, 64, psum=True), tile(), tile()), lambda: nisa.nc_matmul(blank(64, 64, psum=True), tile(), tile(psum=True))),
    ("memory-space", "the PE transposes from SBUF to PSUM", lambda: nisa.nc_transpose(blank(64, 64, psum=True), tile(64, 64)), lambda: nisa.nc_transpose(blank(64, 64), tile(64, 64))),
    ("memory-space", "must be in sbuf", lambda: nisa.dma_transpose(blank(64, 128), tile()), lambda: nisa.dma_transpose(hbm(64, 128), tile())),
    # partitions
    ("partitions", "of which there are 128", lambda: blank(128), lambda: blank(129)),
    ("partition-start", "from 100 on; so many start at 0, 32, 64, 96", lambda: nisa.memset(blank()[96:128], 0.0), lambda: nisa.memset(blank()[100:128], 0.0)),
    ("partition-start", "covers 64 partitions from 32", lambda: nisa.memset(blank()[64:128], 0.0), lambda: nisa.memset(blank()[32:96], 0.0)),
    ("partition-start", "covers 33 partitions from 32 on; so many start at 0, 64", lambda: nisa.memset(blank()[32:64], 0.0), lambda: nisa.memset(blank()[32:65], 0.0)),
    ("partition-start", "covers 65 partitions from 32 on; so many start at 0[.]", lambda: nisa.memset(blank()[0:65], 0.0), lambda: nisa.memset(blank()[32:97], 0.0)),
    ("partition-start", "covers 96 partitions from 32", lambda: nisa.memset(blank()[0:96], 0.0), lambda: nisa.memset(blank()[32:128], 0.0)),
    ("partition-start", "covers 32 partitions from 16", lambda: nisa.tensor_copy(blank(32), tile()[32:64]), lambda: nisa.tensor_copy(blank(32), tile()[16:48])),
    ("partition-start", "covers 64 partitions from 32", lambda: nisa.memset(blank(64, address=(64, 0)), 0.0), lambda: nisa.memset(blank(64, address=(32, 0)), 0.0)),
    # addresses and capacity
    ("address", "start at a multiple of 32", lambda: blank(64, address=(64, 0)), lambda: blank(64, address=(48, 0))),
    ("address", "start at a multiple of 32", lambda: blank(64, address=(64, 0)), lambda: blank(64, address=(96, 0))),
    ("psum-bank", "a multiple of 2048 bytes", lambda: blank(psum=True, address=(0, 4096)), lambda: blank(psum=True, address=(0, 4100))),
    ("sbuf-capacity", "with 212992 usable", lambda: blank(n=53248), lambda: blank(n=53249)),
    ("sbuf-capacity", "with 212992 usable", lambda: blank(n=256, address=(0, 211968)), lambda: blank(n=257, address=(0, 211968))),
    ("psum-capacity", "with 16384 usable", lambda: blank(n=4096, psum=True), lambda: blank(n=4097, psum=True)),
    # the Tensor engine
    ("matmul-limits", "N = 513: at most 512", lambda: matmul(n=512), lambda: matmul(n=513)),
    ("matmul-limits", "M = 192: at most 128", lambda: matmul(m=128), lambda: nisa.nc_matmul(blank(128, 8, psum=True), tile(128, 192, BF16), tile(128, 8, BF16))),
    ("shape", "K must agree", lambda: nisa.nc_matmul(blank(64, 64, psum=True), tile(64), tile(64)), lambda: nisa.nc_matmul(blank(64, 64, psum=True), tile(64), tile(128))),
    ("shape", "must hold 64 x 64", lambda: nisa.nc_matmul(blank(64, 64, psum=True), tile(), tile()), lambda: nisa.nc_matmul(blank(64, 32, psum=True), tile(), tile())),
    ("psum-bank", "covers bytes 1024 to 3071", lambda: nisa.nc_matmul(blank(64, 1024, psum=True)[:, 512:1024], tile(n=64, dtype=BF16), tile(n=512, dtype=BF16)), lambda: nisa.nc_matmul(blank(64, 1024, psum=True)[:, 256:768], tile(n=64, dtype=BF16), tile(n=512, dtype=BF16))),
    ("dtype", "a matmul writes float32", lambda: matmul(dst=F32), lambda: matmul(dst=BF16)),
    ("dtype", "fp32 pairs with fp32", lambda: matmul(a=F32, b=F32), lambda: matmul(a=F32, b=BF16)),
    ("dtype", "the PE takes fp8", lambda: matmul(a=BF16), lambda: matmul(a=nl.int8)),
    ("generation", "float8_e4m3fn as a matmul operand needs trn3", lambda: matmul(a=nl.float8_e4m3, b=nl.float8_e4m3), lambda: matmul(a=nl.float8_e4m3fn, b=nl.float8_e4m3fn)),
    ("psum-accumulate", "4096 elements no matmul has written", lambda: matmul(accumulate=False), lambda: matmul(accumulate=True)),
    ("dtype", "a transpose keeps the dtype", lambda: nisa.nc_transpose(blank(64, 64, BF16, psum=True), tile(64, 64, BF16)), lambda: nisa.nc_transpose(blank(64, 64, F32, psum=True), tile(64, 64, BF16))),
    ("matmul-limits", "transposes up to 32 x 32", lambda: nisa.nc_transpose(blank(32, 32), tile(32, 32), engine=nisa.vector_engine), lambda: nisa.nc_transpose(blank(64, 64), tile(64, 64), engine=nisa.vector_engine)),
    ("shape", "double_row takes operands", lambda: nisa.nc_matmul(blank(32, 32, psum=True), tile(128, 64, nl.float8_e4m3).reshape((128, 2, 32)), tile(128, 64, nl.float8_e4m3).reshape((128, 2, 32)), perf_mode="double_row"), lambda: nisa.nc_matmul(blank(32, 32, psum=True), tile(128, 64, nl.float8_e4m3), tile(128, 64, nl.float8_e4m3), perf_mode="double_row")),
    ("dtype", "double_row takes fp8", lambda: None, lambda: nisa.nc_matmul(blank(32, 32, psum=True), tile(128, 64, BF16).reshape((128, 2, 32)), tile(128, 64, BF16).reshape((128, 2, 32)), perf_mode="double_row")),
    ("matmul-limits", "does not fit tile_size", lambda: matmul(k=64, m=32, tile_position=(64, 0), tile_size=(64, 32)), lambda: matmul(k=64, m=32, tile_position=(32, 0), tile_size=(64, 32))),
    # elements
    ("shape", "holds 128 x 63 elements", lambda: nisa.tensor_copy(blank(), tile()), lambda: nisa.tensor_copy(blank(), tile(n=63))),
    ("shape", "has 8192 elements", lambda: nisa.dma_copy(hbm(), tile()), lambda: nisa.dma_copy(hbm(), tile(64))),
    ("shape", "must hold 128 x 1", lambda: nisa.tensor_scalar(blank(), tile(), nl.add, tile(n=1)), lambda: nisa.tensor_scalar(blank(), tile(), nl.add, tile(n=2))),
    ("dtype", "operand0 = .* must be float32", lambda: nisa.tensor_scalar(blank(), tile(), nl.add, tile(n=1)), lambda: nisa.tensor_scalar(blank(), tile(), nl.add, tile(n=1, dtype=BF16))),
    ("dtype", "is a float and dst .* holds integers", lambda: nisa.memset(blank(dtype=nl.int32), 1), lambda: nisa.memset(blank(dtype=nl.int32), 1.0)),
    ("dtype", "can only be filled with 0", lambda: nisa.memset(blank(dtype=nl.float8_e4m3fn_x4), 0), lambda: nisa.memset(blank(dtype=nl.float8_e4m3fn_x4), 1)),
    ("operator", "both bitwise, or both arithmetic", lambda: nisa.tensor_scalar(blank(dtype=nl.int32), tile(dtype=nl.int32), nl.bitwise_and, 1, op1=nl.bitwise_or, operand1=2), lambda: nisa.tensor_scalar(blank(dtype=nl.int32), tile(dtype=nl.int32), nl.bitwise_and, 1, op1=nl.add, operand1=2)),
    ("dtype", "takes integers", lambda: nisa.tensor_tensor(blank(dtype=nl.int32), tile(dtype=nl.int32), tile(dtype=nl.int32), nl.bitwise_or), lambda: nisa.tensor_tensor(blank(), tile(), tile(), nl.bitwise_or)),
    ("operator", "the hardware has no such ALU operation", lambda: nisa.tensor_tensor(blank(), tile(), tile(), nl.multiply), lambda: nisa.tensor_tensor(blank(), tile(), tile(), nl.divide)),
    ("operator", "does not reduce here", lambda: nisa.tensor_reduce(blank(n=1), nl.add, tile(), 1), lambda: nisa.tensor_reduce(blank(n=1), nl.power, tile(), 1)),
    ("operator", "is no activation function", lambda: nisa.activation(blank(), nl.exp, tile()), lambda: nisa.activation(blank(), nl.power, tile())),
    ("operator", "use add", lambda: nisa.activation_reduce(blank(), nl.exp, tile(), nl.add, blank(n=1)), lambda: nisa.activation_reduce(blank(), nl.exp, tile(), nl.maximum, blank(n=1))),
    ("operand", "reduce_cmd.reset_reduce needs reduce_op", lambda: nisa.activation(blank(), nl.exp, tile(), reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reset_reduce), lambda: nisa.activation(blank(), nl.exp, tile(), reduce_cmd=nisa.reduce_cmd.reset_reduce)),
    ("shape", "only the last, free dimensions reduce", lambda: nisa.tensor_reduce(blank(n=8), nl.add, tile().reshape((128, 8, 8)), 2), lambda: nisa.tensor_reduce(blank(n=8), nl.add, tile().reshape((128, 8, 8)), 1)),
    ("engine", "the Scalar engine: trn2 has multiply, add", lambda: nisa.tensor_scalar(blank(), tile(), nl.multiply, 2.0, engine=nisa.scalar_engine), lambda: nisa.tensor_scalar(blank(), tile(), nl.maximum, 2.0, engine=nisa.scalar_engine)),
    ("engine", "the Scalar engine cannot do this", lambda: nisa.tensor_tensor(blank(), tile(), tile(), nl.add), lambda: nisa.tensor_tensor(blank(), tile(), tile(), nl.add, engine=nisa.scalar_engine)),
    ("operand", "the only legal fill", lambda: nisa.range_select(blank(), tile(), nl.less, nl.less, tile(n=1), tile(n=1)), lambda: nisa.range_select(blank(), tile(), nl.less, nl.less, tile(n=1), tile(n=1), on_false_value=0.0)),
    ("shape", "at most 512", lambda: nisa.bn_stats(blank(n=6), tile(n=512)), lambda: nisa.bn_stats(blank(n=6), tile(n=513))),
    ("shape", "8 to 16384 are legal", lambda: nisa.max8(blank(n=8), tile(n=8)), lambda: nisa.max8(blank(n=8), tile(n=7))),
    ("dtype", "predicate = .* must be uint8", lambda: nisa.tensor_copy_predicated(tile(), tile(), tile(dtype=nl.uint8)), lambda: nisa.tensor_copy_predicated(tile(), tile(), tile())),
    ("shape", "must be 32 numbers", lambda: nisa.nc_stream_shuffle(blank(32), tile(32), [0] * 32), lambda: nisa.nc_stream_shuffle(blank(32), tile(32), [0] * 31)),
    ("reduction-register", "that nothing has set", lambda: nisa.tensor_scalar_reduce(blank(), tile(), nl.add, 0.0, nl.add), lambda: nisa.tensor_scalar_reduce(blank(), tile(), nl.add, 0.0, nl.add, reduce_cmd=nisa.reduce_cmd.reduce)),
    ("reduction-register", "that nothing has set", lambda: chained(False), lambda: chained(True)),
    ("shape", "pattern .* counts 60 elements", lambda: nisa.iota(blank(), [[1, 64]]), lambda: nisa.iota(blank(), [[1, 60]])),
    # DMA
    ("shape", "must have the shape", lambda: nisa.dma_transpose(blank(64, 128), hbm()), lambda: nisa.dma_transpose(blank(128, 64), hbm())),
    ("dtype", "hwdge copies bits", lambda: nisa.dma_copy(blank(), hbm(), dge_mode=nisa.dge_mode.hwdge), lambda: nisa.dma_copy(blank(dtype=BF16), hbm(), dge_mode=nisa.dge_mode.hwdge)),
    ("dge-mode", "hwdge transposes", lambda: nisa.dma_transpose(blank(64, 16, BF16), hbm(16, 64, BF16), dge_mode=nisa.dge_mode.hwdge), lambda: nisa.dma_transpose(blank(64, 32, BF16), hbm(32, 64, BF16), dge_mode=nisa.dge_mode.hwdge)),
    ("operator", "a DMA only adds", lambda: nisa.dma_compute(hbm(), [hbm(), hbm()], nl.add), lambda: nisa.dma_compute(hbm(), [hbm(), hbm()], nl.maximum)),
    ("operand", "a DMA takes 1 to 16", lambda: nisa.dma_compute(hbm(), [hbm()] * 16, nl.add), lambda: nisa.dma_compute(hbm(), [hbm()] * 17, nl.add)),
    ("operand", "must all be 1.0", lambda: nisa.dma_compute(hbm(), [hbm()], nl.add, [1.0]), lambda: nisa.dma_compute(hbm(), [hbm()], nl.add, [0.5])),
    ("access-pattern", "repeats elements", lambda: nisa.memset(tile(n=1), 0.0), lambda: nisa.memset(tile(n=1).broadcast(1, 8), 0.0)),
    ("operand", "src is a NoneType, and must be a tensor", lambda: nisa.tensor_copy(blank(), tile()), lambda: nisa.tensor_copy(blank(), None)),
    ("operand", "its arguments do not fit: .*op", lambda: nisa.tensor_tensor(blank(), tile(), tile(), nl.add), lambda: nisa.tensor_tensor(blank(), tile(), tile())),
    ("operand", "its arguments do not fit", lambda: nisa.iota(blank(), [[1, 64]]), lambda: nisa.iota(blank(), 64)),
    # registers and loops
    ("register", "the induction register of a loop is read-only", lambda: nl.fori_loop(0, 2, lambda i: nisa.register_move(register(0), i)), lambda: nl.fori_loop(0, 2, lambda i: nisa.register_move(i, 3))),
    ("register", "no value while the kernel is traced", lambda: hbm().ap([[64, 1], [1, 64]], scalar_offset=register(1)), lambda: hbm()[register(1) * 2]),
    ("register", "a range is unrolled", lambda: list(nl.affine_range(3)), lambda: list(nl.affine_range(register(3)))),
    ("register", "1x1 tensor of 32-bit integers", lambda: nisa.register_load(register(0), tile(1, 1, nl.int32)), lambda: nisa.register_load(register(0), tile(1, 1))),
    ("out-of-range", "a run-time offset of 128", lambda: nisa.dma_copy(blank(1), hbm().select(0, register(127))), lambda: nisa.dma_copy(blank(1), hbm().select(0, register(128)))),
    # generations
    ("generation", "nisa.exponential needs trn3", lambda: nisa.activation(blank(), nl.exp, tile()), lambda: nisa.exponential(blank(), tile())),
    ("generation", "nisa.activate2 needs trn3", lambda: None, lambda: nisa.activate2(blank(), nl.exp, tile(), 1.0, 0.0, nl.multiply, nl.add)),
    ("generation", "nisa.quantize_mx needs trn3", lambda: None, lambda: nisa.quantize_mx(blank(n=16, dtype=nl.float8_e4m3fn_x4), tile(dtype=BF16), blank(n=16, dtype=nl.uint8))),
    ("generation", "nl.abs_max needs trn3", lambda: nisa.tensor_tensor(blank(), tile(), tile(), nl.maximum), lambda: nisa.tensor_tensor(blank(), tile(), tile(), nl.abs_max)),
    ("generation", "nl.square in tensor_scalar needs trn3", lambda: nisa.tensor_scalar(blank(), tile(), nl.abs, None), lambda: nisa.tensor_scalar(blank(), tile(), nl.square, None)),
    ("generation", "DMA priority needs trn3", lambda: nisa.dma_copy(hbm(), tile()), lambda: nisa.dma_copy(hbm(), tile(), priority=1)),
    # the two cores
    ("lnc", "this launch has lnc = 1", lambda: None, lambda: nisa.core_barrier(nl.zeros((2, 2), F32, buffer=nl.shared_hbm), (0, 1))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "words", "good", "bad"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_one_edit_breaks_one_rule(
    rule: str, words: str, good: Callable[[], Any], bad: Callable[[], Any]
) -> None:
    def kernel(x: Any, body: Callable[[], Any]) -> Any:
        body()
        return None

    simulate(kernel, X, good, target="trn2")
    with pytest.raises(KernelError, match=words) as caught:
        simulate(kernel, X, bad, target="trn2")
    assert caught.value.rule == rule
    assert caught.value.where.file == __file__
    assert f"[{rule}]" in str(caught.value)


def test_trn3_takes_what_trn2_refuses() -> None:
    def kernel() -> None:
        matmul(n=1024)
        matmul(dst=BF16)
        matmul(a=nl.float8_e4m3fn, b=nl.float8_e4m3fn)
        nisa.tensor_scalar(blank(), tile(), nl.square, None)
        nisa.dma_copy(hbm(), tile(), priority=1)
        nisa.exponential(blank(), tile())
        assert nisa.get_nc_version() == nisa.nc_version.gen4 > nisa.nc_version.gen3

    simulate(kernel, target="trn3")


def test_an_error_names_the_instruction_and_its_line() -> None:
    def kernel() -> None:
        nisa.memset(blank()[100:128], 0.0)

    with pytest.raises(
        KernelError, match=r"test_rules.py:\d+: \[partition-start\] memset: dst = sbuf_0\[28, 64\]"
    ):
        simulate(kernel)
