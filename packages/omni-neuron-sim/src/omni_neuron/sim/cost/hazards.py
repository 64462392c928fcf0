"""Which earlier instructions an instruction has to wait for: reads after writes, writes after both."""

from dataclasses import dataclass, field

from omni_neuron.sim.cost.trace import PSUM_ADDRESSES, Operand, Trace
from omni_neuron.sim.memory.spaces import MemorySpace

Box = tuple[int, int, int, int]
_PAGE = 2048  # bytes of a partition, or of HBM, that are searched together


Access = tuple[float, int]  # when it finishes, and which instruction it is


@dataclass(slots=True)
class _Page:
    written: dict[Box, Access] = field(default_factory=dict)
    read: dict[Box, Access] = field(default_factory=dict)


def _overlap(a: Box, b: Box) -> bool:
    return a[0] <= b[1] and b[0] <= a[1] and a[2] <= b[3] and b[2] <= a[3]


def _covers(outer: Box, inner: Box) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1] and outer[2] <= inner[2] and inner[3] <= outer[3]


class Hazards:
    """What has touched which bytes, and until when."""

    def __init__(self) -> None:
        self._pages: dict[tuple[int, int], _Page] = {}

    def _keys(self, operand: Operand, storage: int, box: Box) -> list[tuple[int, int]]:
        """The pages of an access; a tensor in HBM is one."""
        if not operand.space.on_chip:
            return [(storage, 0)]
        return [(storage, page) for page in range(box[2] // _PAGE, box[3] // _PAGE + 1)]

    def ready(self, operand: Operand, storage: int, box: Box, writes: bool) -> tuple[float, int]:
        """When the operand may be touched, and the instruction that it waits for (-1 for none)."""
        best, blame = 0.0, -1
        for key in self._keys(operand, storage, box):
            page = self._pages.get(key)
            if page is None:
                continue
            for accesses in (page.written, page.read) if writes else (page.written,):
                for other, (finish_s, index) in accesses.items():
                    if finish_s > best and _overlap(other, box):
                        best, blame = finish_s, index
        return best, blame

    def note(
        self, operand: Operand, storage: int, box: Box, writes: bool, finish_s: float, index: int
    ) -> None:
        """Remember an access; a write makes everything it covers irrelevant."""
        for key in self._keys(operand, storage, box):
            page = self._pages.setdefault(key, _Page())
            if operand.space.on_chip:
                low = key[1] * _PAGE
                part = (box[0], box[1], max(box[2], low), min(box[3], low + _PAGE - 1))
            else:
                part = box
            if writes:
                for accesses in (page.read, page.written):
                    for covered in [other for other in accesses if _covers(part, other)]:
                        del accesses[covered]
                page.written[part] = finish_s, index
            else:
                page.read[part] = max(page.read.get(part, (0.0, -1)), (finish_s, index))


def psum_banks(trace: Trace, banks: int, bank_bytes: int) -> dict[int, int]:
    """A byte offset in PSUM for each tensor without an address, so that only what fits runs at once.

    Banks are given out in program order, the one that has been free longest first, as a compiler rotates
    them.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    size: dict[int, int] = {}
    for index, event in enumerate(trace.events):
        for operand in (*event.writes, *event.reads):
            if operand.space is MemorySpace.psum and operand.storage != PSUM_ADDRESSES:
                first.setdefault(operand.storage, index)
                last[operand.storage] = index
                size[operand.storage] = max(size.get(operand.storage, 0), operand.box[3] // bank_bytes + 1)
    free_since = [0] * banks
    placed: dict[int, int] = {}
    for storage, start in first.items():
        width = min(size[storage], banks)
        starts = range(banks - width + 1)
        chosen = min(
            starts, key=lambda b: (max(free_since[b : b + width]) > start, max(free_since[b : b + width]))
        )
        placed[storage] = chosen * bank_bytes
        free_since[chosen : chosen + width] = [last[storage] + 1] * width
    return placed
