"""One physical core in the middle of a kernel: what an instruction knows of where it runs."""

import math
import threading
import weakref
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from omni_neuron.sim.errors import KernelError, kernel_line
from omni_neuron.sim.machine import CHIPS, Generation
from omni_neuron.sim.memory.buffer import Allocation, Buffer
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.numerics.formats import Array, DType
from omni_neuron.sim.numerics.random_sequence import RandomSequence

if TYPE_CHECKING:
    from omni_neuron.sim.cost.trace import Trace
    from omni_neuron.sim.execution.world import World

GENERATION: dict[Generation, int] = {"trn1": 2, "trn2": 3, "trn3": 4}


Holder = tuple["weakref.ref[Buffer]", tuple[int, int, int, int]]  # partitions and bytes, from and to


class ReductionRegisters:
    """One fp32 value per partition that a chain of instructions reduces into."""

    def __init__(self) -> None:
        self.values = np.zeros(128, dtype=np.float32)
        self.undefined = np.zeros(128, dtype=np.uint8)
        self.valid = False


class Core:
    """State of (rank, core): memory in use, reduction registers, the place in the program."""

    def __init__(self, world: "World", rank: int, core_id: int, trace: "Trace | None" = None) -> None:
        self.world = world
        self.rank = rank
        self.core_id = core_id
        self.trace = trace
        self.chip = CHIPS[world.target]
        self.lnc = world.lnc
        self.generation = GENERATION[world.target]
        self.allocations: list[Allocation] = []
        self.holders: dict[MemorySpace, dict[int, Holder]] = {s: {} for s in MemorySpace}
        self.registers = {"scalar": ReductionRegisters(), "vector": ReductionRegisters()}
        self.instructions = 0
        self.opcode = ""
        self.shared_names: Counter[str] = Counter()
        self.random = RandomSequence(world.seed + 2 * rank + core_id)
        rounding = np.random.default_rng((world.seed, rank, core_id)) if world.stochastic_rounding else None
        self.rounding = rounding  # the chances of stochastic rounding; None rounds to nearest

    @property
    def epoch(self) -> int:
        """How often the cores of this rank have met."""
        return self.world.epochs[self.rank]

    def __str__(self) -> str:
        return f"rank {self.rank} core {self.core_id}"

    def here(self) -> str:
        """The instruction and the line that run now."""
        return f"{self.opcode or 'the kernel'} at {kernel_line()}"

    def error(self, rule: str, what: str) -> KernelError:
        return KernelError(rule, what, opcode=self.opcode, core=str(self) if self.world.cores > 1 else "")

    def hold(self, buffer: Buffer) -> None:
        """Remember that an addressed buffer has content."""
        holders = self.holders[buffer.space]
        if buffer.identity not in holders and buffer.address is not None:
            first, low = buffer.address
            last, high = first + buffer.shape[0] - 1, low + buffer.allocation.partition_bytes - 1
            holders[buffer.identity] = (weakref.ref(buffer), (first, last, low, high))

    def allocate(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        space: MemorySpace,
        name: str = "",
        address: tuple[int, int] | None = None,
        content: Array | None = None,
    ) -> Buffer:
        """A new buffer; shared HBM is one for both cores, found by its name or line."""
        row = math.prod(shape[1:] if space.on_chip else shape)
        shared = space is MemorySpace.shared_hbm
        named = bool(name)
        if not named:
            name = f"{space.value}_{self.shared_names[''] if shared else len(self.allocations)}"
            self.shared_names[""] += shared
        allocation = Allocation(name, space, shape, dtype, row * dtype.itemsize, address, kernel_line())
        allocation.named = named
        if shared and self.lnc > 1:
            return self.world.shared(self, allocation, content)
        buffer = Buffer(allocation, self.world.precise, content)
        if space.on_chip:
            self.allocations.append(allocation)
        return buffer

    def touch(self, buffer: Buffer) -> None:
        """The running instruction uses a buffer."""
        allocation = buffer.allocation
        if allocation.first_use < 0:
            allocation.first_use = self.instructions
        allocation.last_use = self.instructions


_running = threading.local()


def current_core() -> Core:
    """The core that this thread runs. KernelError outside of a kernel."""
    core: Core | None = getattr(_running, "core", None)
    if core is None:
        raise KernelError(
            "launch", "NKI instructions and tensors exist only while a kernel runs: call the kernel."
        )
    return core


def running() -> bool:
    """Whether this thread is inside a kernel."""
    return getattr(_running, "core", None) is not None


class entered:  # noqa: N801 - reads as `with entered(core):`
    """Make `core` the one that this thread runs."""

    def __init__(self, core: Core) -> None:
        self.core = core

    def __enter__(self) -> Core:
        self.before = getattr(_running, "core", None)
        _running.core = self.core
        return self.core

    def __exit__(self, *_: object) -> None:
        _running.core = self.before
