"""The Scalar engine: functions of scaled and shifted data, with row sums; and trn3's exp on Vector."""

from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.access import Codes
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.arithmetic import apply, reduction
from omni_neuron.sim.nki.isa.enums import Engine, ReduceCmd
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.operands import merge, scalar_or_vector, store, values, warn
from omni_neuron.sim.nki.isa.reduction_registers import lanes_of, update_registers, write_registers
from omni_neuron.sim.nki.isa.rules import needs_generation, on_engine, same_elements
from omni_neuron.sim.nki.language.operators import Operator
from omni_neuron.sim.numerics.activations import ACTIVATIONS, outside_valid_range
from omni_neuron.sim.numerics.formats import Array

ACTIVATE2_OPS = (
    ("multiply", "add"), ("multiply", "subtract"), ("multiply", "bypass"), ("add", "bypass"),
    ("subtract", "bypass"), ("bypass", "bypass"),
)  # fmt: skip


def _function(op: Any, newer: bool = False) -> str:
    if not isinstance(op, Operator) or (op.activation not in ACTIVATIONS and op.activation != "prelu"):
        raise KernelError(
            "operator", f"op = {op!r} is no activation function: use one such as nl.exp or nl.copy."
        )
    if op.activation == "prelu" and not newer:
        raise KernelError("operator", "nl.prelu takes a slope: use nisa.activate2 with relu_param.")
    return op.activation


def _evaluate(name: str, x: Array, codes: Codes | None, slope: float = 0.0) -> Array:
    if name == "prelu":
        return np.where(x < 0, x * np.float32(slope), x)
    outside = outside_valid_range(name, x)
    if outside is not None:
        if codes is not None:
            outside = outside & (np.broadcast_to(codes, outside.shape) == 0)
        if outside.any():
            example = float(x[outside][0])
            warn(
                f"{int(outside.sum())} inputs of nl.{name}, such as {example:g}, are outside the "
                f"hardware's range"
            )
    return np.asarray(ACTIVATIONS[name](x), np.float32)


def _operand(argument: str, value: Any, partitions: int, fp32: bool) -> tuple[Any, Codes | None]:
    if isinstance(value, NkiTensor):
        on_engine(Engine.scalar, **{argument: value})
    return scalar_or_vector(argument, value, partitions, fp32)


def _tensors(*values_: Any) -> tuple[NkiTensor, ...]:
    return tuple(v for v in values_ if isinstance(v, NkiTensor))


def _activate(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    bias: Any,
    scale: Any,
    reduce_op: Any,
    reduce_res: Any,
    command: ReduceCmd,
) -> Work:
    on_engine(Engine.scalar, dst=dst, data=data, reduce_res=reduce_res)
    same_elements(dst, data=data)
    name = _function(op)
    if reduce_op is not None:
        reduction(reduce_op, only=("add",))
    elif command != ReduceCmd.idle:
        raise KernelError("operand", f"reduce_cmd.{ReduceCmd(command).name} needs reduce_op=nl.add.")
    x, codes = values(data)
    factor, factor_codes = _operand("scale", scale, data.partitions, fp32=True)
    x = x * factor
    shift_codes = None
    if bias is not None:
        if not isinstance(bias, NkiTensor):
            needs_generation(3, "a number as bias")
        shift, shift_codes = _operand("bias", bias, data.partitions, fp32=False)
        x = x + shift
    codes = merge(codes, factor_codes, shift_codes)
    result = _evaluate(name, x, codes)
    lanes = lanes_of(data)
    if reduce_op is not None:
        update_registers("scalar", lanes, "add", result, codes, command)
    store(dst, result, codes)
    write_registers("scalar", lanes, reduce_res)
    return Work(Engine.scalar, (dst, *_tensors(reduce_res)), (data, *_tensors(scale, bias)))


@instruction
def activation(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: ReduceCmd = ReduceCmd.idle,
    name: str | None = None,
) -> Work:
    """dst = op(data * scale + bias) in fp32; a reduce_cmd sums the rows of results into registers."""
    return _activate(dst, op, data, bias, scale, reduce_op, reduce_res, reduce_cmd)


@instruction
def activation_reduce(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    reduce_op: Any,
    reduce_res: NkiTensor,
    bias: Any = None,
    scale: Any = 1.0,
    name: str | None = None,
) -> Work:
    """`activation` whose row sums go to reduce_res (P, 1)."""
    return _activate(dst, op, data, bias, scale, reduce_op, reduce_res, ReduceCmd.reset_reduce)


@instruction
def activate2(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    imm0: Any,
    imm1: Any,
    op0: Any,
    op1: Any,
    relu_param: float = 0.0,
    reverse0: bool = False,
    reverse1: bool = False,
    reduce_op: Any = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: ReduceCmd = ReduceCmd.idle,
    name: str | None = None,
) -> Work:
    """dst = op((data op0 imm0) op1 imm1), on trn3."""
    needs_generation(4, "nisa.activate2")
    on_engine(Engine.scalar, dst=dst, data=data, reduce_res=reduce_res)
    same_elements(dst, data=data)
    steps = tuple("bypass" if o is None else o.alu if isinstance(o, Operator) else str(o) for o in (op0, op1))
    if steps not in ACTIVATE2_OPS:
        raise KernelError("operator", f"(op0, op1) = {steps}: use one of {ACTIVATE2_OPS}.")
    function = _function(op, newer=True)
    x, codes = values(data)
    for step, value, reverse, argument in zip(
        steps, (imm0, imm1), (reverse0, reverse1), ("imm0", "imm1"), strict=True
    ):
        if step != "bypass":
            operand, more = _operand(argument, value, data.partitions, fp32=True)
            x, codes = apply(step, x, operand, reverse), merge(codes, more)
    result = _evaluate(function, x, codes, relu_param)
    lanes = lanes_of(data)
    if reduce_op is not None:
        joined = reduction(reduce_op, only=("add", "maximum", "minimum", "abs_max", "abs_min"))
        update_registers("scalar", lanes, joined, result, codes, reduce_cmd)
    store(dst, result, codes)
    write_registers("scalar", lanes, reduce_res)
    return Work(Engine.scalar, (dst, *_tensors(reduce_res)), (data, *_tensors(imm0, imm1)))


@instruction
def exponential(
    dst: NkiTensor,
    src: NkiTensor,
    max_value: Any = 0.0,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: ReduceCmd = ReduceCmd.idle,
    reduce_init: Any = 0.0,
    name: str | None = None,
) -> Work:
    """dst = exp(src - max_value) on the Vector engine of trn3, with row sums if asked."""
    needs_generation(4, "nisa.exponential")
    on_engine(Engine.vector, dst=dst, src=src, reduce_res=reduce_res)
    same_elements(dst, src=src)
    x, codes = values(src)
    if isinstance(max_value, NkiTensor):
        on_engine(Engine.vector, max_value=max_value)
    shift, more = scalar_or_vector("max_value", max_value, src.partitions)
    result, codes = np.exp(x - shift), merge(codes, more)
    lanes = lanes_of(src)
    update_registers("vector", lanes, "add", result, codes, reduce_cmd, reduce_init)
    store(dst, result, codes)
    write_registers("vector", lanes, reduce_res)
    return Work(Engine.vector, (dst, *_tensors(reduce_res)), (src, *_tensors(max_value)))
