"""What every instruction does besides its work: counting, live ranges, the trace, errors with its name."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec

import numpy as np

from omni_neuron.sim.cost.trace import Meets
from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import Core, current_core
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.enums import Engine
from omni_neuron.sim.nki.removed import misfit

P = ParamSpec("P")


@dataclass(slots=True)
class Work:
    """What an instruction did: on which engine, from and to which tensors, and for waits with whom."""

    engine: Engine
    writes: tuple[NkiTensor, ...] = ()
    reads: tuple[NkiTensor, ...] = ()
    meeting: Meets | None = None
    flops: int = 0  # useful ones: transposes have none
    passes: float = 1.0  # of the Tensor engine over the moving operand


class NkiInstruction:
    """The handle that a call returns. Scheduling hints do not change results, so they are only remembered."""

    def __init__(self, opcode: str, name: str | None, index: int, engine: Engine) -> None:
        self.opcode = opcode
        self.name = name
        self.index = index
        self.engine = engine
        self.producers: tuple[NkiInstruction, ...] = ()

    def depends_on(self, *producers: "NkiInstruction") -> "NkiInstruction":
        """Run after `producers`; program order already does."""
        self.producers += producers
        return self

    def __repr__(self) -> str:
        return f"<{self.opcode} {self.name or self.index}>"


def place(core: Core) -> str:
    """Which core it is, where there are several."""
    return str(core) if core.world.cores > 1 else ""


def instruction(function: Callable[P, Work]) -> Callable[P, NkiInstruction]:
    """Make a function of `nki.isa` an instruction of the running core."""
    opcode = function.__name__

    @functools.wraps(function)
    def issue(*args: P.args, **kwargs: P.kwargs) -> NkiInstruction:
        core = current_core()
        core.opcode = opcode
        core.instructions += 1
        try:
            with np.errstate(all="ignore"):
                work = function(*args, **kwargs)
        except KernelError as error:
            if error.opcode:
                raise
            raise KernelError(error.rule, error.what, error.where, opcode, place(core)) from None
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise KernelError("operand", f"{misfit(error)}.", None, opcode, place(core)) from error
        for tensor in (*work.writes, *work.reads):
            core.touch(tensor.buffer_)
        if core.trace is not None:
            core.trace.record(core, opcode, work)
        core.opcode = ""
        name = kwargs.get("name")
        return NkiInstruction(opcode, name if isinstance(name, str) else None, core.instructions, work.engine)

    return issue
