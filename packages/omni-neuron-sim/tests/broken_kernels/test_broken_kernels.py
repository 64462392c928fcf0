# ruff: noqa: E501 - one edit a line
"""Kernels that are right, and edits of one place each that the machine or the language refuses.

`kernels/` holds the kernels: `run()` launches one, `expected()` says what comes out. An edit names the
kernel, the text that is replaced, what replaces it, the rule that breaks and words of the message. The error
is reported at the edited line, or at the line of `at`.
"""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

from omni_neuron.sim import KernelError

KERNELS = Path(__file__).parent / "kernels"
DOCUMENTATION = Path(__file__).parents[4] / "docs" / "simulator.md"


class Edit(NamedTuple):
    """One change that breaks a kernel."""

    kernel: str
    old: str
    new: str
    rule: str
    words: str
    at: str = ""


EDITS = [
    # memories and engines
    Edit("softmax", "powers = nl.ndarray((rows, columns), nl.float32)", "powers = nl.ndarray((rows, columns), nl.float32, buffer=nl.hbm)", "memory-space", "activation: dst = .* engines reach SBUF and PSUM", at="nisa.activation(powers[:, 0:half]"),
    Edit("gemm", "nisa.tensor_copy(result, sums)", "nisa.tensor_copy(result, sums, engine=nisa.gpsimd_engine)", "memory-space", "GpSimd does not reach PSUM"),
    Edit("gemm", "nisa.tensor_copy(result, sums)", "nisa.tensor_tensor(result, sums, sums, nl.add)", "memory-space", "data1 and data2 are both in PSUM"),
    Edit("gemm", "nisa.dma_copy(out, result)", "nisa.dma_copy(out, sums)", "memory-space", "src = .* must be in sbuf or private_hbm or shared_hbm"),
    Edit("gemm", "buffer=nl.psum, address=(0, 0)", "address=(0, 0)", "memory-space", "dst = .* must be in psum", at="nisa.nc_matmul("),
    Edit("transposes", "nl.bfloat16, buffer=nl.psum)", "nl.bfloat16)", "memory-space", "the PE transposes from SBUF to PSUM", at="nisa.nc_transpose(turned, tile)"),
    Edit("masks", "row = nl.ndarray((1, N), nl.float32)", "row = nl.ndarray((1, N), nl.float32, buffer=nl.psum)", "memory-space", "tensor_partition_reduce: dst = .*GpSimd does not reach PSUM", at="nisa.tensor_partition_reduce("),
    Edit("softmax", "nl.multiply, total)", "nl.subtract, total, engine=nisa.scalar_engine)", "engine", "subtract on the Scalar engine: trn2 has multiply, add"),
    Edit("masks", "nisa.memset(odd, 0)", "nisa.memset(odd, 0, engine=nisa.scalar_engine)", "engine", "the Scalar engine cannot do this: use Vector, GpSimd"),
    Edit("gathered_rows", "dge_mode=nisa.dge_mode.swdge", "engine=nisa.vector_engine", "engine", "engine vector cannot start this DMA"),
    # partitions
    Edit("gemm", "ROWS, COLUMNS, DEPTH = 64,", "ROWS, COLUMNS, DEPTH = 129,", "partitions", "dimension 0 is the partition, of which there are 128", at="banks = nl.ndarray("),
    Edit("masks", "odd[32:64]", "odd[30:64]", "partition-start", "covers 34 partitions from 30 on; so many start at 0, 64"),
    Edit("masks", "odd[32:64]", "odd[60:64]", "partition-start", "covers 4 partitions from 60 on; so many start at 0, 32, 64, 96"),
    Edit("rotating_tiles", "address=(64, i", "address=(32, i", "partition-start", "covers 64 partitions from 32 on; so many start at 0, 64", at="nisa.tensor_scalar("),
    Edit("transposes", "tile[0:32, nl.ds", "tile[8:40, nl.ds", "partition-start", "data = .* covers 32 partitions from 8"),
    # addresses, capacity, banks
    Edit("rotating_tiles", "address=(64, i", "address=(72, i", "address", "64 partitions start at a multiple of 32"),
    Edit("rotating_tiles", "address=(64, i", "address=(96, i", "address", "64 partitions start at a multiple of 32 below 128"),
    Edit("rotating_tiles", "SLOTS * 64)", "SLOTS * 212960)", "sbuf-capacity", "covers bytes 212960 to 213024 of a partition with 212992 usable", at="tiles.append("),
    Edit("many_tiles", "TILES, BANKS = 4, 8", "TILES, BANKS = 5, 8", "sbuf-capacity", "5 tensors alive at instruction .* need 266240 bytes per partition, and there are 212992", at="tiles = [nl.ndarray("),
    Edit("many_tiles", "TILES, BANKS = 4, 8", "TILES, BANKS = 4, 9", "psum-capacity", "9 tensors alive at instruction .* need 9 banks, and there are 8", at="parts = [nl.ndarray("),
    Edit("gemm", "(rows, 2048)", "(rows, 4097)", "psum-capacity", "covers bytes 0 to 16388 of a partition with 16384 usable"),
    Edit("gemm", "address=(0, 0)", "address=(0, 1024)", "psum-bank", "PSUM tensors start at a bank, a multiple of 2048 bytes"),
    Edit("gemm", "banks[:, nl.ds(512, columns)]", "banks[:, nl.ds(256, columns)]", "psum-bank", "covers bytes 1024 to 3071 of a partition, across banks of 2048", at="nisa.nc_matmul("),
    # undefined data, and tiles that are overwritten before they are read
    Edit("softmax", "nisa.dma_copy(out, powers)", "nisa.dma_copy(out[:, 0:half], powers[:, 0:half])", "uninitialised", r"16384 elements of the result .* the first at \[0, 128\]", at="out = nl.ndarray("),
    Edit("softmax", "nisa.dma_copy(tile, x)", "nisa.dma_copy(tile[0:64], x[0:64])", "uninitialised", "sbuf_0 .* was never written and then read by tensor_reduce", at="out = nl.ndarray("),
    Edit("gemm", "nisa.dma_copy(right, b[nl.ds(128 * k, 128)])", "nisa.dma_copy(right[0:127], b[nl.ds(128 * k, 127)])", "uninitialised", "sbuf_2 .* was never written and then read by nc_matmul", at="out = nl.ndarray("),
    Edit("rotating_tiles", "SLOTS = 2", "SLOTS = 1", "uninitialised", "sbuf_0 .* was overwritten through sbuf_1 .* at the same address, by dma_copy", at="out = nl.ndarray("),
    Edit("rotating_tiles", "SLOTS * 64)", "SLOTS * 32)", "uninitialised", "2048 elements of the result .* overwritten through", at="out = nl.ndarray("),
    Edit("gathered_rows", "nisa.dma_copy(index, picked)", "nisa.dma_copy(index[0:3], picked[0:3])", "uninitialised", "is used as row indices and is not defined: .* was never written", at="nisa.dma_copy(tile, found"),
    Edit("run_time_loop", "nisa.dma_copy(number, count)", "nisa.dma_copy(row, x[0:1])", "uninitialised", "is used as an address and is not defined", at="nisa.register_load("),
    Edit("masks", "nisa.memset(odd, 0)", "nisa.memset(odd[0:16], 0)", "uninitialised", "sbuf_6 .* was never written and then read by tensor_copy_predicated", at="out = nl.ndarray("),
    # the Tensor engine
    Edit("gemm", "COLUMNS, DEPTH = 64, 512,", "COLUMNS, DEPTH = 64, 513,", "matmul-limits", "N = 513: at most 512 columns of float32 per matmul", at="nisa.nc_matmul("),
    Edit("transposes", "nisa.nc_transpose(turned, tile)", "nisa.nc_transpose(turned, tile, engine=nisa.vector_engine)", "matmul-limits", "this engine transposes up to 32 x 32"),
    Edit("gemm", "accumulate=k > 0", "accumulate=True", "psum-accumulate", "of which 32768 elements no matmul has written"),
    Edit("gemm", "left = nl.ndarray((128, rows), nl.bfloat16)", "left = nl.ndarray((128, rows), nl.float32)", "dtype", "fp32 pairs with fp32 or tf32", at="nisa.nc_matmul("),
    Edit("gemm", "left = nl.ndarray((128, rows), nl.bfloat16)", "left = nl.ndarray((128, rows), nl.int8)", "dtype", "the PE takes fp8, bf16, fp16, tf32 and fp32", at="nisa.nc_matmul("),
    Edit("gemm", "banks = nl.ndarray((rows, 2048), nl.float32", "banks = nl.ndarray((rows, 2048), nl.bfloat16", "dtype", "a matmul writes float32, and dst = ", at="nisa.nc_matmul("),
    Edit("gemm", "accumulate=k > 0)", "accumulate=k > 0, perf_mode=nisa.matmul_perf_mode.double_row)", "shape", r"double_row takes operands \[K, 2, columns\]"),
    Edit("gemm", "left = nl.ndarray((128, rows)", "left = nl.ndarray((96, rows)", "shape", "dst = .* has 6144 elements and src = .* 8192", at="nisa.dma_copy(left"),
    Edit("microscaling", "ROWS, M, N = 32,", "ROWS, M, N = 48,", "shape", "partitions in 32s and elements in 4s", at="nisa.quantize_mx(packed_a"),
    Edit("microscaling", "M, N = 32, 8, 16", "M, N = 32, 7, 16", "matmul-limits", "M = 7: even, and at most 128", at="nisa.nc_matmul_mx("),
    # dtypes, operands, operators, shapes
    Edit("softmax", "total = nl.ndarray((rows, 1), nl.float32)", "total = nl.ndarray((rows, 1), nl.bfloat16)", "dtype", "operand0 = .* must be float32", at="nisa.tensor_scalar("),
    Edit("masks", "nisa.memset(odd, 0)", "nisa.memset(odd, 0.5)", "dtype", "value = 0.5 is a float and dst = .* holds integers"),
    Edit("masks", "odd = nl.ndarray((N, N), nl.uint8)", "odd = nl.ndarray((N, N), nl.int8)", "dtype", "predicate = .* must be uint8, uint16 or uint32", at="nisa.tensor_copy_predicated("),
    Edit("transposes", "turned = nl.ndarray((columns, rows), nl.bfloat16", "turned = nl.ndarray((columns, rows), nl.float32", "dtype", "a transpose keeps the dtype", at="nisa.nc_transpose(turned"),
    Edit("run_time_loop", "number = nl.ndarray((1, 1), nl.int32)", "number = nl.ndarray((1, 1), nl.float32)", "register", "must be a 1x1 tensor of 32-bit integers", at="nisa.register_load("),
    Edit("microscaling", "scale_a, scale_b = nl.ndarray((ROWS, m), nl.uint8)", "scale_a, scale_b = nl.ndarray((ROWS, m), nl.float32)", "dtype", "dst_scale = .* must be uint8 or float8_e8m0fnu", at="nisa.quantize_mx(packed_a"),
    Edit("row_quantised", "nl.multiply, scale)", "nl.multiply, packed[:, columns : columns + 1])", "dtype", "operand0 = .* must be float32"),
    Edit("softmax", "nl.multiply, total)", "nl.multiply, None)", "operand", "operand0 is a NoneType: give a number or a .P, 1. tile"),
    Edit("row_quantised", "op1=nl.maximum, operand1=-240.0)", "operand1=-240.0)", "operand", "operand1 is given without op1"),
    Edit("softmax", "nl.multiply, total)", "nl.multiply)", "operand", "its arguments do not fit: .*operand0"),
    Edit("masks", "low, high, reduce_res=best)", "low, high, reduce_res=best, on_false_value=-1e9)", "operand", "on_false_value = .*the only legal fill is"),
    Edit("softmax", "nl.multiply, total)", "nl.divide, total)", "operator", "nl.divide: the hardware has no such ALU operation"),
    Edit("softmax", "nl.exp, tile[:, 0:half]", "nl.power, tile[:, 0:half]", "operator", "power"),
    Edit("masks", "cmp_op=nl.greater_equal", "cmp_op=nl.add", "operator", "cmp_op = nl.add: use"),
    Edit("ring", "group, nl.maximum", "group, nl.multiply", "operator", "op = nl.multiply does not reduce here: use add, minimum, maximum"),
    Edit("softmax", "tile, axis=1", "tile, axis=0", "shape", "axis = 0 of 2 dimensions: only the last, free dimensions reduce"),
    Edit("softmax", "nisa.activation(powers[:, 0:half]", "nisa.activation(powers[:, 0:60]", "shape", "data = .* holds 128 x 128 elements, and dst = .* 128 x 60"),
    Edit("masks", "[31] * 32", "[31] * 16", "shape", "must be 32 numbers below 32, or 255"),
    Edit("masks", "[[-1, N]]", "[[-1, N - 1]]", "shape", "counts 63 elements, and on_true_tile = .* 64"),
    # views
    Edit("masks", "odd[32:64]", "odd[0:64:2]", "access-pattern", "a step of 2 over the partitions of .*: none is skipped"),
    Edit("masks", "nisa.memset(odd, 0)", "nisa.memset(odd[:, 0:1].broadcast(1, N), 0)", "access-pattern", "repeats elements .stride 0., so it cannot be written"),
    Edit("row_quantised", ".permute((0, 1, 2))", ".permute((1, 0, 2))", "access-pattern", "the partition must stay dimension 0 on chip"),
    Edit("row_quantised", "packed[:, columns : columns + 4]", "packed[:, columns - 1 : columns + 3]", "access-pattern", "4 bytes do not divide evenly"),
    Edit("gathered_rows", "table.ap(", "tile.ap(", "access-pattern", "vector_offset gathers rows .dimension 0. of HBM tensors only"),
    Edit("transposes", "axes=(1, 0)", "axes=(0, 1)", "access-pattern", "a DMA transposes by"),
    Edit("softmax", "tile[:, half:columns], top", "tile[:, half + 1 : columns + 1], top", "out-of-range", "129:257 of dimension 1 of .* is not within its 256 elements"),
    Edit("rotating_tiles", "tiles[i - 1], nl.multiply", "tiles[i - 1][64], nl.multiply", "out-of-range", "index 64 of dimension 0"),
    Edit("gathered_rows", ", oob_mode=nisa.oob_mode.skip", "", "out-of-range", "row index 99 .position 2. of .*, which has 64 rows; oob_mode.skip", at="nisa.dma_copy(tile, found"),
    Edit("run_time_loop", "COUNT = np.array([[3]]", "COUNT = np.array([[5]]", "out-of-range", "a run-time offset of 4 into .* must be below 4", at="nisa.dma_copy(row"),
    # DMA modes
    Edit("gathered_rows", "nisa.dge_mode.swdge", "nisa.dge_mode.hwdge", "dge-mode", "hwdge does not gather or scatter rows"),
    Edit("transposes", "x[nl.ds(STRIP * i, STRIP)], axes", "x[nl.ds(STRIP * i, 8)], axes", "shape", r"dst = .* must have the shape \[64, 8\]"),
    Edit("transposes", "STRIP = 16", "STRIP = 32", "dge-mode", r"hwdge transposes \(16,\) rows of up to 128 elements of 2 bytes", at="nisa.dma_transpose("),
    # generations
    Edit("microscaling", 'TARGET = "trn3"', 'TARGET = "trn2"', "generation", "nisa.quantize_mx needs trn3, and the target is trn2", at="nisa.quantize_mx(packed_a"),
    Edit("softmax", "nl.multiply, total)", "nl.abs_max, total)", "generation", "nl.abs_max needs trn3"),
    Edit("settings", "nl.multiply, factor)", "nl.square, None)", "generation", "nl.square in tensor_scalar needs trn3"),
    Edit("gemm", "nisa.dma_copy(out, result)", "nisa.dma_copy(out, result, priority=1)", "generation", "DMA priority needs trn3"),
    Edit("gemm", "left = nl.ndarray((128, rows), nl.bfloat16)", "left = nl.ndarray((128, rows), nl.float8_e4m3fn)", "generation", "float8_e4m3fn as a matmul operand needs trn3", at="nisa.nc_matmul("),
    Edit("softmax", "nisa.tensor_scalar(powers, powers, nl.multiply, total)", "nisa.exponential(powers, powers)", "generation", "nisa.exponential needs trn3"),
    # registers
    Edit("softmax", "start = nisa.reduce_cmd.reset_reduce", "start = nisa.reduce_cmd.idle", "reduction-register", "reduce goes on from scalar registers that nothing has set", at="nisa.activation(powers[:, half:columns]"),
    Edit("row_quantised", "nl.maximum, largest)", "nl.maximum, largest, reduce_cmd=nisa.reduce_cmd.idle)", "reduction-register", "reduce_res takes vector registers that nothing has set"),
    Edit("run_time_loop", "nisa.register_move(current, i)", "nisa.register_move(i, 0)", "register", "the induction register of a loop is read-only"),
    Edit("run_time_loop", "x.select(0, current)", "x[current + 1]", "register", "a register has no value while the kernel is traced"),
    Edit("run_time_loop", "nl.fori_loop(0, steps, add)", "[add(i) for i in nl.affine_range(steps)]", "register", "a range is unrolled while tracing"),
    # two cores
    Edit("two_cores", "nisa.core_barrier(staged, (0, 1))", "nisa.memset(theirs, 0.0)", "race", "core 1 writes what core 0 read in staged", at="nisa.dma_copy(staged[me]"),
    Edit("two_cores", "nisa.core_barrier(staged, cores=(0, 1))", "nisa.memset(mine, 0.0)", "race", "core 0 reads what core 1 wrote in staged.* with no nisa.core_barrier", at="nisa.dma_copy(theirs"),
    Edit("two_cores", "nisa.dma_copy(out[me], theirs)", "nisa.dma_copy(out[0], theirs)", "race", "core . writes what core . wrote in .* with no nisa.core_barrier between"),
    Edit("two_cores", "nisa.sendrecv(", "if me == 0: nisa.sendrecv(", "deadlock", "core 0 waits in nisa.sendrecv .pipe 0. at .* for rank 0 core 1 .finished"),
    Edit("two_cores", "pipe_id=0", "pipe_id=me", "deadlock", "core 0 waits in nisa.sendrecv .pipe 0.*core 1 waits in nisa.sendrecv .pipe 1"),
    Edit("two_cores", "nisa.core_barrier(staged, (0, 1))", "nisa.core_barrier(staged, (0,))", "lnc", r"cores = \(0,\), and must be \(0, 1\)"),
    Edit("two_cores", "send_to_rank=other", "send_to_rank=me", "lnc", "sends to . and receives from .: both are"),
    Edit("two_cores", "CORES = 2", "CORES = 1", "lnc", "joins the two cores of a logical core, and this launch has lnc = 1", at="nisa.core_barrier(staged, (0, 1))"),
    Edit("two_cores", "staged = nl.ndarray((2, 64, 8)", "staged = nl.ndarray((2, 64, 8 + me)", "lnc-divergence", r"a tensor in shared_hbm is .* here and .* on the other core"),
    # collectives
    Edit("ring", "ncc.all_reduce([hops[0]]", "ncc.all_reduce([x]", "collective", "is an argument of the kernel: stage it"),
    Edit("ring", "return out", "return hops[3]", "collective", "which a collective moved: copy it", at="hops = ["),
    Edit("ring", "((0, 1, 2, 3),)", "((0, 1, 2),)", "collective", r"rank 3 is in none of the groups", at="ncc.all_reduce("),
    Edit("ring", "((0, 1, 2, 3),)", "((0, 1), (2, 4))", "collective", "names ranks beyond the 4 of this launch", at="ncc.all_reduce("),
    Edit("ring", "((0, 1, 2, 3),)", "(range(4),)", "collective", "a ReplicaGroup of range objects does not compile", at="shape, group = "),
    Edit("ring", "[top], group, nl.maximum)", "[top], group, nl.add if rank == 2 else nl.maximum)", "collective", "mismatch in ncc.all_reduce: rank 2"),
    Edit("ring", "for i in range(3):", "for i in range(3 - rank // 3):", "deadlock", "nobody can go on", at="ncc.collective_permute_implicit("),
    Edit("ring", 'buffer=nl.shared_hbm, name="top")', 'buffer=nl.hbm, name="top")', "collective", "dsts = .* must be in shared_hbm", at="ncc.all_reduce("),
    # the language
    Edit("softmax", "columns // 2", "sum((columns,)) // 2", "language", r"sum\(\): not among the builtins"),
    Edit("softmax", "columns // 2", "int(np.floor(columns / 2))", "language", r"np.floor\(\): host libraries do not run inside a kernel"),
    Edit("settings", "engine: Any = None)", "*, engine: Any = None)", "language", "scale: keyword-only arguments"),
    Edit("settings", "class Block(nl.NKIObject):", "class Block:", "language", "classes in kernels derive from nl.NKIObject"),
    Edit("settings", "with nl.no_reorder():", "with open('x') as f:", "language", "with: only nl.no_reorder", at="with open"),
    Edit("settings", "assert dst.shape == src.shape", "if dst.shape != src.shape: raise ValueError", "language", "raise .use assert.: not part of the kernel language"),
    Edit("settings", "buffer=nl.sbuf)", "buffer='sbuf')", "language", "buffer='sbuf': buffers are named by nl.sbuf"),
    Edit("settings", "    def count(self, rows: int)", "    @property\n    def count(self, rows: int)", "language", "count: properties are not resolved", at="def count"),
    Edit("rotating_tiles", "nisa.dma_copy(out[i - 1], tiles[i - 1])", "out[i - 1] = tiles[i - 1]", "language", "cannot be assigned to: use nisa.tensor_copy or nisa.dma_copy"),
    # arguments and results
    Edit("softmax", "return out", "return powers", "output-space", "outputs are allocated with buffer=nl.shared_hbm", at="powers = nl.ndarray("),
    Edit("gemm", "nl.float32, buffer=nl.shared_hbm)", "nl.float32, buffer=nl.hbm)", "output-space", "outputs are allocated with buffer=nl.shared_hbm"),
    Edit("softmax", ".astype(np.float32)", ".astype(np.float64)", "arguments", "NKI has no dtype float64", at="return simulate("),
    Edit("two_cores", "simulate(swapped_sums, X,", "simulate(swapped_sums, [X],", "arguments", "arg0 is a list, which kernels do not take: pass a tuple"),
    Edit("softmax", 'return simulate(softmax, X, target="trn2")', "return softmax.function(X)", "launch", "exist only while a kernel runs", at="tile = nl.ndarray("),
    Edit("row_quantised", "precise=True", "precise=False", "relaxed-mode", "in relaxed mode: run with precise=True", at="scale = packed["),
]  # fmt: skip


def load(name: str, source: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Source text as a module of a file of its own."""
    file = folder / f"{name}_kernel.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted({edit.kernel for edit in EDITS}))
def test_the_kernels_themselves_are_right(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = load(name, (KERNELS / f"{name}.py").read_text(), tmp_path, monkeypatch)
    expected = np.asarray(kernel.expected(), np.float64)
    # fp32 sums of up to 256 products, each within half an ulp of the largest
    np.testing.assert_allclose(kernel.run(), expected, rtol=0, atol=16 * 2.0**-24 * np.abs(expected).max())


@pytest.mark.parametrize("edit", EDITS, ids=[f"{i}-{e.kernel}-{e.rule}" for i, e in enumerate(EDITS)])
def test_one_edit_breaks_one_rule(edit: Edit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (KERNELS / f"{edit.kernel}.py").read_text()
    assert source.count(edit.old) == 1
    edited = source.replace(edit.old, edit.new)
    where = edited.index(edit.at) if edit.at else source.index(edit.old)
    with pytest.raises(KernelError, match=edit.words) as caught:
        load(edit.kernel, edited, tmp_path, monkeypatch).run()
    error = caught.value
    assert error.rule == edit.rule
    assert (error.where.file, error.where.line) == (
        str(tmp_path / f"{edit.kernel}_kernel.py"),
        edited[:where].count("\n") + 1,
    )


def test_every_documented_rule_is_broken_at_least_once() -> None:
    table = DOCUMENTATION.read_text().split("## Rules")[1].split("## ")[0]
    documented = {
        name for row in re.findall(r"^\| (`.*?) \|", table, re.M) for name in re.findall(r"`(.*?)`", row)
    }
    assert len(documented) > 30
    assert {edit.rule for edit in EDITS} == documented
    assert len(EDITS) >= 60
    assert len(set(EDITS)) == len(EDITS)
