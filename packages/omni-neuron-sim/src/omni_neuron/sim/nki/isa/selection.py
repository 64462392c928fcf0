"""Instructions that choose between elements: by ranges of positions, by predicates, by affine conditions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.access import scalar_value
from omni_neuron.sim.memory.registers import VirtualRegister
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.arithmetic import apply, comparison, reduction
from omni_neuron.sim.nki.isa.enums import Engine, ReduceCmd
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.operands import merge, scalar_or_vector, store, stored, values
from omni_neuron.sim.nki.isa.reduction_registers import lanes_of, update_registers, write_registers
from omni_neuron.sim.nki.isa.rules import needs_generation, on_engine, one_in_psum, same_elements
from omni_neuron.sim.nki.language.operators import OPERATORS
from omni_neuron.sim.numerics.alu import COMPARISONS
from omni_neuron.sim.numerics.formats import Array, bool_, float32, int8, int16, uint8, uint16

FILL = float(np.finfo(np.float32).min)
RANGE_OPS = ("equal", "less", "less_equal", "greater", "greater_equal")
MOST_STEPS = 4


def affine(pattern: Sequence[Sequence[int]], offset: Any, channel_multiplier: int, partitions: int) -> Array:
    """offset + p * channel_multiplier + sum(index_k * step_k) in int32, `[P, N]`."""
    if not 1 <= len(pattern) <= MOST_STEPS:
        raise KernelError(
            "access-pattern", f"pattern = {pattern}: one to {MOST_STEPS} pairs of [step, number]."
        )
    start = scalar_value(offset) if isinstance(offset, NkiTensor | VirtualRegister) else int(offset)
    total = np.zeros((1,), np.int64)
    for step, number in pattern:
        total = (total[:, None] + np.arange(int(number), dtype=np.int64)[None, :] * int(step)).reshape(-1)
    channels = np.arange(partitions, dtype=np.int64)[:, None] * int(channel_multiplier)
    return (start + channels + total[None, :]).astype(np.int32).astype(np.int64)


def _fits(argument: str, tensor: NkiTensor, table: Array, pattern: Any) -> None:
    if tensor.columns != table.shape[1]:
        raise KernelError(
            "shape",
            f"pattern = {pattern} counts {table.shape[1]} elements, and {argument} = {tensor!r} "
            f"{tensor.columns}.",
        )


@instruction
def iota(
    dst: NkiTensor,
    pattern: Sequence[Sequence[int]],
    offset: Any = 0,
    channel_multiplier: int = 0,
    name: str | None = None,
) -> Work:
    """dst = offset + p * channel_multiplier + sum(index_k * step_k), in int32 and then cast."""
    on_engine(Engine.gpsimd, dst=dst)
    table = affine(pattern, offset, channel_multiplier, dst.partitions)
    _fits("dst", dst, table, pattern)
    store(dst, table)
    return Work(Engine.gpsimd, (dst,), (offset,) if isinstance(offset, NkiTensor) else ())


@instruction
def affine_select(
    dst: NkiTensor,
    pattern: Sequence[Sequence[int]],
    channel_multiplier: int,
    on_true_tile: NkiTensor,
    on_false_value: float,
    cmp_op: Any = OPERATORS["equal"],
    offset: Any = 0,
    name: str | None = None,
) -> Work:
    """Keep on_true_tile where the affine value compares to 0 by cmp_op, else write a constant."""
    on_engine(Engine.gpsimd, dst=dst, on_true_tile=on_true_tile)
    same_elements(dst, on_true_tile=on_true_tile)
    operation = comparison(cmp_op, "cmp_op", COMPARISONS)
    table = affine(pattern, offset, channel_multiplier, dst.partitions)
    _fits("on_true_tile", on_true_tile, table, pattern)
    chosen = apply(operation, table, 0) != 0
    if not isinstance(on_false_value, int | float | np.integer | np.floating):
        raise KernelError(
            "operand", f"on_false_value is a {type(on_false_value).__name__}, and must be a number."
        )
    kept, codes = values(on_true_tile)
    store(
        dst,
        np.where(chosen, kept, np.float32(on_false_value)),
        None if codes is None else np.where(chosen, codes, 0).astype(np.uint8),
    )
    return Work(Engine.gpsimd, (dst,), (on_true_tile,))


@instruction
def range_select(
    dst: NkiTensor,
    on_true_tile: NkiTensor,
    comp_op0: Any,
    comp_op1: Any,
    bound0: NkiTensor,
    bound1: NkiTensor,
    reduce_cmd: ReduceCmd = ReduceCmd.reset_reduce,
    reduce_res: NkiTensor | None = None,
    reduce_op: Any = OPERATORS["maximum"],
    range_start: int = 0,
    on_false_value: float = FILL,
    name: str | None = None,
) -> Work:
    """Keep element j where range_start + j compares with both (P, 1) bounds, else -3.4e38; row maximum."""
    needs_generation(3, "nisa.range_select")
    on_engine(
        Engine.vector, dst=dst, on_true_tile=on_true_tile, bound0=bound0, bound1=bound1, reduce_res=reduce_res
    )
    same_elements(dst, on_true_tile=on_true_tile)
    if np.float32(on_false_value) != np.float32(FILL):
        raise KernelError("operand", f"on_false_value = {on_false_value}: the only legal fill is {FILL:.8g}.")
    if reduce_res is not None and reduce_res.dtype is not float32:
        raise KernelError("dtype", f"reduce_res = {reduce_res!r} must be float32.")
    joined = reduction(reduce_op, only=("maximum",))
    first, second = comparison(comp_op0, "comp_op0", RANGE_OPS), comparison(comp_op1, "comp_op1", RANGE_OPS)
    start = scalar_value(range_start) if isinstance(range_start, NkiTensor | VirtualRegister) else range_start
    positions = (np.arange(dst.columns) + int(start)).astype(np.float32)[None, :]
    low, low_codes = scalar_or_vector("bound0", bound0, dst.partitions)
    high, high_codes = scalar_or_vector("bound1", bound1, dst.partitions)
    chosen = (apply(first, positions, low) != 0) & (apply(second, positions, high) != 0)
    kept, codes = values(on_true_tile)
    result = np.where(chosen, kept, np.float32(FILL))
    codes = merge(
        None if codes is None else np.where(chosen, codes, 0).astype(np.uint8), low_codes, high_codes
    )
    lanes = lanes_of(on_true_tile)
    update_registers("vector", lanes, joined, result, codes, reduce_cmd)
    store(dst, result, codes)
    write_registers("vector", lanes, reduce_res)
    results = (dst, reduce_res) if reduce_res is not None else (dst,)
    return Work(Engine.vector, results, (on_true_tile, bound0, bound1))


@instruction
def select_reduce(
    dst: NkiTensor,
    predicate: NkiTensor,
    on_true: NkiTensor,
    on_false: Any,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: ReduceCmd = ReduceCmd.idle,
    reduce_op: Any = OPERATORS["maximum"],
    reverse_pred: bool = False,
    name: str | None = None,
) -> Work:
    """dst = on_true where the predicate is not zero, else on_false (number or (P, 1)); row maximum."""
    on_engine(Engine.vector, dst=dst, predicate=predicate, on_true=on_true, reduce_res=reduce_res)
    one_in_psum("on_true", on_true, "predicate", predicate)
    same_elements(dst, predicate=predicate, on_true=on_true)
    if predicate.dtype not in (bool_, int8, uint8, int16, uint16):
        raise KernelError("dtype", f"predicate = {predicate!r} must be an integer of 8 or 16 bits.")
    joined = reduction(reduce_op, only=("maximum",))
    steering, steering_codes = stored(predicate)
    chosen = (steering == 0) if reverse_pred else (steering != 0)
    kept, codes = values(on_true)
    other, other_codes = scalar_or_vector("on_false", on_false, dst.partitions)
    result = np.where(chosen, kept, other)
    picked = None if codes is None else np.where(chosen, codes, 0).astype(np.uint8)
    missed = None if other_codes is None else np.where(chosen, 0, other_codes).astype(np.uint8)
    merged = merge(picked, missed, steering_codes)
    lanes = lanes_of(on_true)
    update_registers("vector", lanes, joined, result, merged, reduce_cmd)
    store(dst, result, merged)
    write_registers("vector", lanes, reduce_res)
    reads = [t for t in (predicate, on_true, on_false) if isinstance(t, NkiTensor)]
    return Work(Engine.vector, (dst, reduce_res) if reduce_res is not None else (dst,), tuple(reads))
