"""Indexing with ints, slices, `nl.ds`, `...` and run-time scalars.

On chip an int keeps the partition as a dimension of size 1 and drops a free dimension, but at least two
dimensions stay; in HBM at least one stays. A slice that ends outside of the tensor is an error, not cut off.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.registers import VirtualRegister

if TYPE_CHECKING:
    from omni_neuron.sim.memory.tensor import NkiTensor, ScalarOffset


@dataclass(frozen=True)
class DynSlice:
    """`nl.ds(start, size)`: size elements from start on. The start may be a register or a 1x1 tensor."""

    start: Any
    size: int
    step: int = 1


def index_tensor(tensor: "NkiTensor", key: Any) -> "NkiTensor":
    from omni_neuron.sim.memory.tensor import NkiTensor

    keys = _complete(tensor, key if isinstance(key, tuple) else (key,))
    offset = tensor.offset
    dims: list[tuple[int, int, bool]] = []  # size, stride, dropped by an int
    scalars: list[ScalarOffset] = []
    for dim, index in enumerate(keys):
        size, stride = tensor.shape[dim], tensor.strides[dim]
        if isinstance(index, slice):
            start, count, step = _slice(tensor, dim, index)
            _every_partition(tensor, dim, step)
            offset += start * stride
            dims.append((count, stride * step, False))
        elif isinstance(index, DynSlice):
            _every_partition(tensor, dim, index.step)
            offset += _start(tensor, dim, index, scalars) * stride
            dims.append((int(index.size), stride * index.step, False))
        elif isinstance(index, VirtualRegister | NkiTensor):
            scalars.append(_scalar(index, stride, size))
            dims.append((1, stride, True))
        else:
            offset += _integer(tensor, dim, index) * stride
            dims.append((1, stride, True))
    kept = _kept(tensor, dims)
    return NkiTensor(
        tensor.buffer_,
        [size for size, _ in kept],
        [stride for _, stride in kept],
        offset,
        tensor.dtype,
        (*tensor.scalar_offsets, *scalars),
        tensor.vector_offset,
        tensor.free_index,
    )


def _every_partition(tensor: "NkiTensor", dim: int, step: int) -> None:
    if tensor.on_chip and dim == 0 and step != 1:
        raise KernelError(
            "access-pattern", f"a step of {step} over the partitions of {tensor!r}: none is skipped."
        )


def _complete(tensor: "NkiTensor", keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """One key per dimension."""
    dots = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(dots) > 1 or len(keys) - len(dots) > tensor.ndim:
        raise KernelError(
            "out-of-range", f"{len(keys)} indices into {tensor!r}, which has {tensor.ndim} dimensions."
        )
    missing = [slice(None)] * (tensor.ndim - len(keys) + len(dots))
    if dots:
        return (*keys[: dots[0]], *missing, *keys[dots[0] + 1 :])
    return (*keys, *missing)


def _kept(tensor: "NkiTensor", dims: list[tuple[int, int, bool]]) -> list[tuple[int, int]]:
    if tensor.on_chip:
        head = [dims[0][:2]]
        free = [d[:2] for d in dims[1:] if not d[2]]
        return head + (free or [d[:2] for d in dims[-1:] if len(dims) > 1] or [(1, 1)])
    return [d[:2] for d in dims if not d[2]] or [dims[-1][:2]]


def _integer(tensor: "NkiTensor", dim: int, index: Any) -> int:
    if not isinstance(index, int | np.integer) or isinstance(index, bool):
        raise KernelError(
            "language", f"{type(index).__name__} is no index: use ints, slices, nl.ds or `...`."
        )
    size = tensor.shape[dim]
    if not -size <= index < size:
        raise KernelError(
            "out-of-range", f"index {index} of dimension {dim} of {tensor!r}, which has {size}."
        )
    return int(index) % size


def _slice(tensor: "NkiTensor", dim: int, key: slice) -> tuple[int, int, int]:
    size = tensor.shape[dim]
    step = 1 if key.step is None else int(key.step)
    if step < 1:
        raise KernelError("access-pattern", f"a slice with step {step} of {tensor!r}: steps are positive.")
    start = 0 if key.start is None else int(key.start)
    stop = size if key.stop is None else int(key.stop)
    start, stop = (n + size if n < 0 else n for n in (start, stop))
    count = -(-(stop - start) // step)
    if start < 0 or stop > size or count < 1:
        raise KernelError(
            "out-of-range",
            f"{start}:{stop} of dimension {dim} of {tensor!r} is not within its {size} elements.",
        )
    return start, count, step


def _start(tensor: "NkiTensor", dim: int, key: DynSlice, scalars: "list[ScalarOffset]") -> int:
    from omni_neuron.sim.memory.tensor import NkiTensor

    size = tensor.shape[dim]
    if isinstance(key.start, VirtualRegister | NkiTensor):
        scalars.append(_scalar(key.start, tensor.strides[dim], size - key.size + 1))
        return 0
    last = key.start + (key.size - 1) * key.step
    if key.size < 1 or key.start < 0 or last >= size:
        raise KernelError(
            "out-of-range",
            f"nl.ds({key.start}, {key.size}) of dimension {dim} of {tensor!r} is not within its "
            f"{size} elements.",
        )
    return int(key.start)


def _scalar(source: "VirtualRegister | NkiTensor", stride: int, limit: int) -> "ScalarOffset":
    from omni_neuron.sim.memory.tensor import ScalarOffset

    return ScalarOffset(source, stride, limit)
