"""The fp32 registers, one per partition, that chains of instructions reduce into.

The reduced values are the fp32 results before they are rounded to dst (the documentation does not say).
"""

from typing import Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import current_core
from omni_neuron.sim.memory.access import Codes
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.enums import ReduceCmd
from omni_neuron.sim.nki.isa.operands import merge, scalar_or_vector, store
from omni_neuron.sim.nki.isa.rules import per_partition
from omni_neuron.sim.numerics.alu import REDUCE, reduce_axis
from omni_neuron.sim.numerics.formats import Array


def update_registers(
    which: str,
    lanes: slice,
    operation: str,
    results: Array,
    codes: Codes | None,
    command: ReduceCmd,
    initial: Any = None,
) -> None:
    """Run one reduce command over the row results `[P, N]` of an instruction."""
    registers = current_core().registers[which]
    if command == ReduceCmd.idle:
        if which == "vector":
            registers.valid = False
        return
    if command in (ReduceCmd.reset, ReduceCmd.reset_reduce):
        registers.values[lanes] = REDUCE[operation]
        registers.undefined[lanes] = 0
        registers.valid = True
    elif command == ReduceCmd.load_reduce:
        if initial is None:
            raise KernelError(
                "operand", "reduce_cmd.load_reduce starts from reduce_init, which is not given."
            )
        value, more = scalar_or_vector("reduce_init", initial, lanes.stop - lanes.start)
        registers.values[lanes] = np.asarray(value).reshape(-1)
        registers.undefined[lanes] = 0 if more is None else more.reshape(-1)
        registers.valid = True
    elif not registers.valid:
        raise KernelError(
            "reduction-register",
            f"reduce_cmd.reduce goes on from {which} registers that nothing has set: reset them.",
        )
    if command == ReduceCmd.reset:
        return
    row = reduce_axis(operation, results, 1)[:, 0]
    both = np.stack([registers.values[lanes], row], axis=1)
    registers.values[lanes] = reduce_axis(operation, both, 1)[:, 0]
    if codes is not None:
        registers.undefined[lanes] = np.maximum(registers.undefined[lanes], codes.max(axis=1))


def lanes_of(tensor: NkiTensor) -> slice:
    return slice(tensor.start_partition, tensor.start_partition + tensor.partitions)


def write_registers(which: str, lanes: slice, destination: NkiTensor | None, negate: bool = False) -> None:
    """Put the registers into a (P, 1) tile, if there is one."""
    if destination is None:
        return
    registers = current_core().registers[which]
    per_partition("reduce_res", destination, lanes.stop - lanes.start)
    if not registers.valid:
        raise KernelError(
            "reduction-register",
            f"reduce_res takes {which} registers that nothing has set: pass a reduce_cmd, "
            f"nisa.reduce_cmd.reset_reduce to start from nothing.",
        )
    found = registers.values[lanes, None]
    codes = registers.undefined[lanes, None]
    store(destination, -found if negate else found, merge(codes.copy() if codes.any() else None))
