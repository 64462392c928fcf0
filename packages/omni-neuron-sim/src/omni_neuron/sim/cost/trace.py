"""What a core did, instruction by instruction, in the form that the cost model needs."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from omni_neuron.sim.errors import SourceLine, kernel_line
from omni_neuron.sim.memory.access import bounding_box
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.numerics.formats import DType

if TYPE_CHECKING:
    from omni_neuron.sim.execution.core import Core
    from omni_neuron.sim.nki.isa.instruction import Work


SBUF_ADDRESSES, PSUM_ADDRESSES = 0, 1
Meets = tuple[Hashable, tuple[tuple[int, int], ...]]  # the key of a meeting, and who takes part


class Operand(NamedTuple):
    """A tensor as an instruction used it: how much, and which bytes of which storage."""

    space: MemorySpace
    dtype: DType
    shape: tuple[int, ...]
    run_bytes: int  # contiguous bytes that a DMA moves at once
    storage: int  # the buffer's identity; SBUF_ADDRESSES and PSUM_ADDRESSES where a kernel gave addresses
    box: tuple[int, int, int, int]  # first and last partition, first and last byte

    @property
    def columns(self) -> int:
        size = 1
        for n in self.shape[1:]:
            size *= n
        return size

    @property
    def bytes(self) -> int:
        return self.shape[0] * self.columns * self.dtype.itemsize


class Event(NamedTuple):
    """One instruction."""

    opcode: str
    engine: str
    where: SourceLine
    writes: tuple[Operand, ...]
    reads: tuple[Operand, ...]
    meeting: Meets | None = None
    flops: int = 0
    passes: float = 1.0
    steering: tuple[Operand, ...] = ()  # indices and run-time offsets: waited for, but not streamed

    @property
    def awaited(self) -> tuple[Operand, ...]:
        """What must be written before it starts."""
        return (*self.reads, *self.steering)


@dataclass
class Trace:
    """The instructions of one core in program order."""

    rank: int = 0
    core: int = 0
    events: list[Event] = field(default_factory=list)

    def record(self, core: "Core", opcode: str, work: "Work") -> None:
        """Note an instruction that has just run."""
        self.rank, self.core = core.rank, core.core_id
        steering = [s for tensor in (*work.writes, *work.reads) for s in _steering(tensor)]
        self.events.append(
            Event(
                opcode,
                work.engine.name,
                kernel_line(),
                tuple(map(_operand, work.writes)),
                tuple(map(_operand, work.reads)),
                work.meeting,
                work.flops,
                work.passes,
                tuple(map(_operand, steering)),
            )
        )


def _steering(tensor: NkiTensor) -> list[NkiTensor]:
    """Tensors whose content says where this one lies."""
    found = [s.source for s in tensor.scalar_offsets if isinstance(s.source, NkiTensor)]
    return found + [by.index for by in (tensor.vector_offset, tensor.free_index) if by is not None]


def _operand(tensor: NkiTensor) -> Operand:
    buffer = tensor.buffer_
    if tensor.scalar_offsets or tensor.is_indirect():
        last = buffer.shape[0] - 1 if tensor.on_chip else 0
        box = (0, last, 0, buffer.allocation.partition_bytes - 1)
    else:
        box = bounding_box(tensor, tensor.offset)
    storage = buffer.identity + 1
    if buffer.address is not None:
        first, low = buffer.address
        storage = PSUM_ADDRESSES if buffer.space is MemorySpace.psum else SBUF_ADDRESSES
        box = (box[0] + first, box[1] + first, box[2] + low, box[3] + low)
    return Operand(tensor.buffer, tensor.dtype, tensor.shape, _run(tensor), storage, box)


def _run(tensor: NkiTensor) -> int:
    """Bytes that follow each other from the last dimension on."""
    run = 1
    for size, stride in zip(reversed(tensor.shape[1:]), reversed(tensor.strides[1:]), strict=True):
        if stride != run and size > 1:
            return run * tensor.itemsize
        run *= size
    if not tensor.on_chip and tensor.ndim and tensor.strides[0] == run:
        run *= tensor.shape[0]
    return run * tensor.itemsize
