"""Scalar registers of the sequencers."""

from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.access import scalar_value
from omni_neuron.sim.memory.registers import VirtualRegister
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.enums import Engine
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.operands import store


def register_alloc(x: Any = None) -> VirtualRegister:
    """A new register, with a number, another register's value or that of a 1x1 tensor in it."""
    register = VirtualRegister()
    if isinstance(x, NkiTensor):
        register_load(register, x)
    elif x is not None:
        register_move(register, x)
    return register


def _register(argument: str, value: Any) -> VirtualRegister:
    if not isinstance(value, VirtualRegister):
        raise KernelError("register", f"{argument} is a {type(value).__name__}, and must be a register.")
    return value


def _one(argument: str, tensor: Any) -> NkiTensor:
    if (
        not isinstance(tensor, NkiTensor)
        or tensor.size != 1
        or not tensor.dtype.is_integer
        or tensor.itemsize != 4
    ):
        raise KernelError("register", f"{argument} = {tensor!r} must be a 1x1 tensor of 32-bit integers.")
    return tensor


@instruction
def register_move(dst: VirtualRegister, src: Any, name: str | None = None) -> Work:
    """dst = src, a number or a register."""
    value = src.content if isinstance(src, VirtualRegister) else src
    if not isinstance(value, int | np.integer):
        raise KernelError("register", f"src is a {type(src).__name__}, and must be an int or a register.")
    _register("dst", dst).set(int(value))
    return Work(Engine.sync)


@instruction
def register_load(dst: VirtualRegister, src: NkiTensor, name: str | None = None) -> Work:
    """dst = the element of a 1x1 tensor."""
    _register("dst", dst).set(scalar_value(_one("src", src)))
    return Work(Engine.sync, (), (src,))


@instruction
def register_store(dst: NkiTensor, src: VirtualRegister, name: str | None = None) -> Work:
    """The 1x1 tensor = src."""
    content = np.full((1, 1), _register("src", src).content, np.int64)
    store(_one("dst", dst), content)
    return Work(Engine.sync, (dst,))
