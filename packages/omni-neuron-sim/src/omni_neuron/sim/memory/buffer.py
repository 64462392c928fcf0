"""One allocation: its bytes, and for every byte whether anything defined stands there."""

import math
from dataclasses import dataclass
from itertools import count

import numpy as np

from omni_neuron.sim.errors import SourceLine
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.numerics.formats import Array, DType, storage_of

DEFINED, NEVER_WRITTEN, OVERWRITTEN = 0, 1, 2
FIRST_ORIGIN = 3  # codes from here on are entries of a core's table of origins
POISON = 0xFF  # NaN in every float format that has one, -1 or the largest number in integers

_identities = count(1)


@dataclass(slots=True)
class Allocation:
    """What remains of a buffer for the checks of capacity when its bytes are gone."""

    name: str
    space: MemorySpace
    shape: tuple[int, ...]
    dtype: DType
    partition_bytes: int
    address: tuple[int, int] | None
    where: SourceLine
    first_use: int = -1  # indices of instructions
    last_use: int = -1
    named: bool = False

    def __str__(self) -> str:
        return f"{self.name} {list(self.shape)} {self.dtype!s} at {self.where}"


class Buffer:
    """Storage of one `nl.ndarray` call or kernel argument.

    `bytes` holds elements in row-major order; on chip a row is one partition. `undefined` has one code per
    granule (`granule` bytes, one element until somebody reinterprets the type): 0 where the content is
    defined.
    `row_elements` are those of one partition on chip, of the whole tensor in HBM.
    `complete` is true when no granule is undefined, so that most reads need not look.
    """

    def __init__(self, allocation: Allocation, precise: bool, content: Array | None = None) -> None:
        self.identity = next(_identities)
        self.allocation = allocation
        self.dtype = allocation.dtype
        self.space = allocation.space
        self.on_chip = allocation.space.on_chip
        self.shape = allocation.shape
        self.size = math.prod(allocation.shape)
        self.row_elements = self.size // self.shape[0] if self.on_chip else self.size
        self.precise = precise
        self.storage = storage_of(allocation.dtype, precise)
        if content is None:
            self.bytes = np.full(self.size * self.storage.itemsize, POISON, dtype=np.uint8)
            self.undefined = np.full(self.size, NEVER_WRITTEN, dtype=np.uint8)
        else:
            self.bytes = np.ascontiguousarray(content).reshape(-1).view(np.uint8).copy()
            self.undefined = np.zeros(self.size, dtype=np.uint8)
        self.granule = self.dtype.itemsize
        self.complete = content is not None
        self.written = False
        self.accumulated: Array | None = None  # PSUM: elements that a matmul has written
        self.read_since_matmul = False
        self.overwritten_by = ""
        self.exchanged = False  # a collective has read or written it
        self.argument = content is not None
        self.races: RaceMap | None = None

    @property
    def address(self) -> tuple[int, int] | None:
        return self.allocation.address

    def split_granules(self, granule: int) -> None:
        """Keep definedness for smaller pieces, because somebody looks at them."""
        if granule < self.granule:
            self.undefined = np.repeat(self.undefined, self.granule // granule)
            self.granule = granule

    def __str__(self) -> str:
        return str(self.allocation)


class RaceMap:
    """Who last wrote and read each element of HBM that two cores share, and before which synchronisation."""

    def __init__(self, size: int) -> None:
        self.writer = np.zeros(size, dtype=np.int32)  # epoch * 4 + core + 1, or + 3 for both; 0 for nobody
        self.reader = np.zeros((2, size), dtype=np.int32)  # per core: epoch + 1 of its last read
