"""A tensor of NKI: a view of a buffer, by offset, shape and strides in elements.

Element (i0, i1, ...) lives at `offset + sum(strides[k] * i_k)`. On chip dimension 0 is the partition, and its
stride is the number of elements in a partition. What only the running machine knows (offsets in registers or
tensors, gathered rows) is kept beside and resolved when an instruction reads or writes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory import views
from omni_neuron.sim.memory.buffer import Buffer
from omni_neuron.sim.memory.indexing import index_tensor
from omni_neuron.sim.memory.registers import VirtualRegister
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.numerics.formats import DType, as_dtype

MAX_DIMENSIONS = 5


@dataclass(frozen=True)
class ScalarOffset:
    """An offset of `value * multiplier` elements, from a register or a 1x1 tensor."""

    source: "VirtualRegister | NkiTensor"
    multiplier: int
    limit: int | None = None  # the value must stay below this; else only the access within its tensor


@dataclass(frozen=True)
class VectorOffset:
    """Row p of the access starts at `index[p] * row_elements` of an HBM tensor with `rows` rows."""

    index: "NkiTensor"
    row_elements: int
    rows: int


@dataclass(frozen=True)
class FreeIndex:
    """Offsets along the free dimension, shared by the partitions of a group (trn3)."""

    index: "NkiTensor"
    num_elem: int
    group: int = 16  # partitions that share a list; 32 for the Tensor engine


class NkiTensor:
    """A view; see the module. Made by `nl.ndarray`, by indexing and by the methods below, never directly.

    It never changes, so what instructions ask again and again is worked out once:
        columns: elements per partition.
        row_elements: elements, in the view's dtype, of one partition of the storage (of all of it in HBM).
        free_span: elements from the first to the last of a partition, less one.
        in_range: whether its bounds were checked and found good.
    """

    __slots__ = (
        "buffer_", "columns", "dtype", "free_index", "free_span", "in_range", "offset", "on_chip",
        "row_elements", "scalar_offsets", "shape", "strides", "vector_offset",
    )  # fmt: skip

    def __init__(
        self,
        buffer: Buffer,
        shape: Sequence[int],
        strides: Sequence[int],
        offset: int = 0,
        dtype: DType | None = None,
        scalar_offsets: tuple[ScalarOffset, ...] = (),
        vector_offset: VectorOffset | None = None,
        free_index: FreeIndex | None = None,
    ) -> None:
        self.buffer_ = buffer
        self.shape = tuple(map(int, shape))
        self.strides = tuple(map(int, strides))
        self.offset = int(offset)
        self.dtype = dtype or buffer.dtype
        self.scalar_offsets = scalar_offsets
        self.vector_offset = vector_offset
        self.free_index = free_index
        self.on_chip = buffer.on_chip
        self.columns = math.prod(self.shape[1:])
        self.row_elements = buffer.row_elements * buffer.dtype.itemsize // self.dtype.itemsize
        self.free_span = sum((n - 1) * s for n, s in zip(self.shape[1:], self.strides[1:], strict=True))
        self.in_range = False

    @classmethod
    def whole(cls, buffer: Buffer) -> "NkiTensor":
        """All of a buffer."""
        return cls(buffer, buffer.shape, views.contiguous_strides(buffer.shape))

    def replace(
        self,
        shape: Sequence[int],
        strides: Sequence[int],
        offset: int | None = None,
        dtype: DType | None = None,
    ) -> "NkiTensor":
        """The same storage, and the same run-time offsets, seen through other numbers."""
        return NkiTensor(
            self.buffer_,
            shape,
            strides,
            self.offset if offset is None else offset,
            dtype or self.dtype,
            self.scalar_offsets,
            self.vector_offset,
            self.free_index,
        )

    # What it is

    @property
    def name(self) -> str:
        return self.buffer_.allocation.name

    @property
    def buffer(self) -> MemorySpace:
        """The memory it lives in."""
        return self.buffer_.space

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def address(self) -> tuple[int, int] | None:
        return self.buffer_.address

    @property
    def partitions(self) -> int:
        return self.shape[0]

    @property
    def start_partition(self) -> int:
        """The first physical partition it covers, as far as the kernel fixed it."""
        base = self.address[0] if self.address else 0
        return base + self.offset // self.row_elements if self.on_chip else 0

    def is_contiguous(self) -> bool:
        """Whether elements follow each other, on chip within each partition."""
        first = 1 if self.on_chip else 0
        return views.is_contiguous(self.shape[first:], self.strides[first:]) and not self.is_indirect()

    def is_indirect(self) -> bool:
        return self.vector_offset is not None or self.free_index is not None

    def get_pattern(self) -> list[list[int]]:
        """`[[stride, count], ...]`, outermost first."""
        return [[stride, count] for stride, count in zip(self.strides, self.shape, strict=True)]

    def __repr__(self) -> str:
        return f"{self.name}{list(self.shape)} {self.dtype!s} in {self.buffer}"

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> NoReturn:
        raise KernelError("language", f"{self!r} cannot be iterated over: index it in a range loop.")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise KernelError(
            "language", f"{self!r} cannot be assigned to: use nisa.tensor_copy or nisa.dma_copy."
        )

    def _no_operator(self, *_: Any) -> NoReturn:
        raise KernelError(
            "language", f"{self!r} has no operators: use nisa.tensor_tensor, nisa.tensor_scalar or nl.add."
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_operator
    __neg__ = __matmul__ = __pow__ = __lt__ = __le__ = __gt__ = __ge__ = _no_operator

    # Views

    def __getitem__(self, key: Any) -> "NkiTensor":
        return index_tensor(self, key)

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> "NkiTensor":
        """Elements start, start + step, ... below end of one dimension."""
        return index_tensor(self, views.at(self, dim, slice(start, end, step)))

    def select(self, dim: int, index: Any) -> "NkiTensor":
        """One index of a dimension; `index` may be a register or a 1x1 tensor."""
        return index_tensor(self, views.at(self, dim, index))

    def vector_select(self, dim: int, index: "NkiTensor") -> "NkiTensor":
        """Rows `index[p, 0]` of an HBM tensor."""
        if dim != 0:
            raise KernelError("access-pattern", f"vector_select gathers along dimension 0, not {dim}.")
        pattern = [[self.strides[0], index.shape[0]], *self.get_pattern()[1:]]
        return self.ap(pattern, vector_offset=index)

    def permute(self, dims: Sequence[int]) -> "NkiTensor":
        return views.permute(self, tuple(dims))

    def broadcast(self, dim: int, size: int) -> "NkiTensor":
        """Repeat a dimension of size 1 without copying."""
        return views.broadcast(self, dim, size)

    def expand_dim(self, dim: int) -> "NkiTensor":
        return views.expand_dim(self, dim)

    def squeeze_dim(self, dim: int) -> "NkiTensor":
        return views.squeeze_dim(self, dim)

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> "NkiTensor":
        """Split one dimension; one size may be -1."""
        return views.reshape_dim(self, dim, tuple(shape))

    def flatten_dims(self, start_dim: int, end_dim: int) -> "NkiTensor":
        """Join the dimensions from start to end, both included."""
        return views.flatten_dims(self, start_dim, end_dim)

    def reshape(self, shape: Sequence[int], *more: int) -> "NkiTensor":
        sizes = (shape, *more) if isinstance(shape, int) else tuple(shape)
        return views.reshape(self, sizes)

    def rearrange(self, src: Any, dst: Any, sizes: dict[str, int] | None = None) -> "NkiTensor":
        """Name the dimensions `src`, a tuple in tuples for joined ones, and arrange them as `dst`."""
        return views.rearrange(self, tuple(src), tuple(dst), dict(sizes or {}))

    def view(self, dtype: Any) -> "NkiTensor":
        """The same bytes as another dtype; the last dimension is rescaled."""
        return views.reinterpret(self, as_dtype(dtype))

    reinterpret_cast = view

    def ap(
        self,
        pattern: Sequence[Sequence[int]],
        offset: int | None = None,
        scalar_offset: Any = None,
        vector_offset: "NkiTensor | None" = None,
        indirect_dim: int = 0,
        dtype: Any = None,
    ) -> "NkiTensor":
        """Any access pattern `[[stride, count], ...]` over the storage, from this view's own offset on."""
        target = None if dtype is None else as_dtype(dtype)
        return views.access_pattern(self, pattern, offset, scalar_offset, vector_offset, indirect_dim, target)

    def indirect(self, index: "NkiTensor", num_elem: int) -> "NkiTensor":
        """Gather or scatter along the free dimension; offset i is `index[i % G, i // G]` (trn3)."""
        from omni_neuron.sim.nki.isa.rules import needs_generation

        needs_generation(4, "indirect access along the free dimension")
        return self.gathered(FreeIndex(index, num_elem))

    def gathered(self, free: FreeIndex) -> "NkiTensor":
        """The elements that an index names in each partition."""
        shape, strides = (self.shape[0], free.num_elem), (self.strides[0], 1)
        return NkiTensor(
            self.buffer_, shape, strides, self.offset, self.dtype, self.scalar_offsets, None, free
        )
