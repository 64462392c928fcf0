"""Operators as instructions take them: which exist, which are integer, and their application."""

from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.nki.isa.rules import needs_generation
from omni_neuron.sim.nki.language.operators import Operator
from omni_neuron.sim.numerics.alu import ARITHMETIC, BITWISE, BITWISE_REDUCE, BITWISE_UNARY, REDUCE, UNARY
from omni_neuron.sim.numerics.formats import Array

_NEWER = ("abs_max", "abs_min")


def alu(op: Any, argument: str = "op") -> str:
    """The name of an ALU operation. KernelError for an operator that the hardware does not have."""
    if not isinstance(op, Operator):
        raise KernelError(
            "operator", f"{argument} is {op!r}: pass an operator of nki.language, such as nl.add."
        )
    name = op.alu
    if name not in ARITHMETIC and name not in UNARY and name not in BITWISE and name not in BITWISE_UNARY:
        raise KernelError("operator", f"{argument} = nl.{op.name}: the hardware has no such ALU operation.")
    if name in _NEWER:
        needs_generation(4, f"nl.{name}")
    return name


def binary(op: Any, argument: str = "op") -> str:
    name = alu(op, argument)
    if is_unary(name):
        raise KernelError("operator", f"{argument} = nl.{name} takes one operand, and there are two.")
    return name


def reduction(op: Any, argument: str = "reduce_op", only: tuple[str, ...] = ()) -> str:
    """The name of an operation that reduces."""
    name = alu(op, argument)
    legal = only or (*REDUCE, *BITWISE_REDUCE)
    if name not in legal:
        raise KernelError("operator", f"{argument} = nl.{name} does not reduce here: use {', '.join(legal)}.")
    return name


def comparison(op: Any, argument: str, only: tuple[str, ...]) -> str:
    name = alu(op, argument)
    if name not in only:
        raise KernelError("operator", f"{argument} = nl.{name}: use {', '.join(only)}.")
    return name


def is_bitwise(name: str) -> bool:
    return name in BITWISE or name in BITWISE_UNARY


def is_unary(name: str) -> bool:
    return name in UNARY or name in BITWISE_UNARY


def apply(name: str, a: Array, b: Any, reverse: bool = False) -> Array:
    """`a op b` (`b op a` if reversed) in the operands' own type; unary operations ignore b."""
    if name in UNARY:
        return UNARY[name](a)
    if name in BITWISE_UNARY:
        return BITWISE_UNARY[name](a)
    function = ARITHMETIC.get(name) or BITWISE[name]
    if not reverse:
        return function(a, b)
    return function(np.broadcast_to(np.asarray(b, dtype=a.dtype), a.shape), a)
