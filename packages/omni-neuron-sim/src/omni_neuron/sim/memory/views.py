"""Arithmetic on shapes and strides behind the view methods of a tensor. Nothing here touches an element."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.memory.registers import VirtualRegister
from omni_neuron.sim.numerics.formats import DType

if TYPE_CHECKING:
    from omni_neuron.sim.memory.tensor import NkiTensor


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    expected = contiguous_strides(shape)
    return all(n == 1 or a == b for n, a, b in zip(shape, strides, expected, strict=True))


def axis(tensor: "NkiTensor", dim: int) -> int:
    """A dimension counted from the front."""
    if not -tensor.ndim <= dim < tensor.ndim:
        raise KernelError("out-of-range", f"dimension {dim} of {tensor!r}, which has {tensor.ndim}.")
    return dim % tensor.ndim


def at(tensor: "NkiTensor", dim: int, index: Any) -> tuple[Any, ...]:
    """The key that indexes one dimension."""
    return (*[slice(None)] * axis(tensor, dim), index)


def _moved_partition(tensor: "NkiTensor", what: str) -> KernelError:
    return KernelError(
        "access-pattern", f"{what} of {tensor!r}: the partition must stay dimension 0 on chip."
    )


def permute(tensor: "NkiTensor", dims: tuple[int, ...]) -> "NkiTensor":
    dims = tuple(axis(tensor, d) for d in dims)
    if sorted(dims) != list(range(tensor.ndim)):
        raise KernelError(
            "access-pattern", f"permute({list(dims)}) does not name each dimension of {tensor!r}."
        )
    if tensor.on_chip and dims[0] != 0:
        raise _moved_partition(tensor, f"permute({list(dims)})")
    return tensor.replace([tensor.shape[d] for d in dims], [tensor.strides[d] for d in dims])


def broadcast(tensor: "NkiTensor", dim: int, size: int) -> "NkiTensor":
    dim = axis(tensor, dim)
    if tensor.shape[dim] != 1:
        raise KernelError(
            "access-pattern", f"broadcast of dimension {dim} of {tensor!r}, which is not of size 1."
        )
    if tensor.on_chip and dim == 0:
        raise _moved_partition(tensor, "broadcast(0)")
    shape, strides = list(tensor.shape), list(tensor.strides)
    shape[dim], strides[dim] = size, 0
    return tensor.replace(shape, strides)


def expand_dim(tensor: "NkiTensor", dim: int) -> "NkiTensor":
    dim = dim if dim >= 0 else tensor.ndim + 1 + dim
    if not 0 <= dim <= tensor.ndim:
        raise KernelError("out-of-range", f"expand_dim({dim}) of {tensor!r}.")
    if tensor.on_chip and dim == 0:
        raise _moved_partition(tensor, "expand_dim(0)")
    stride = tensor.strides[dim] * tensor.shape[dim] if dim < tensor.ndim else 1
    return tensor.replace(
        [*tensor.shape[:dim], 1, *tensor.shape[dim:]], [*tensor.strides[:dim], stride, *tensor.strides[dim:]]
    )


def squeeze_dim(tensor: "NkiTensor", dim: int) -> "NkiTensor":
    dim = axis(tensor, dim)
    if tensor.shape[dim] != 1:
        raise KernelError("access-pattern", f"squeeze_dim({dim}) of {tensor!r}, which is not of size 1.")
    if tensor.on_chip and dim == 0:
        raise _moved_partition(tensor, "squeeze_dim(0)")
    keep = [i for i in range(tensor.ndim) if i != dim]
    return tensor.replace([tensor.shape[i] for i in keep], [tensor.strides[i] for i in keep])


def _filled(total: int, shape: tuple[int, ...], tensor: "NkiTensor") -> tuple[int, ...]:
    """`shape` with its -1 worked out; the sizes must multiply to `total`."""
    known = math.prod(n for n in shape if n != -1)
    if shape.count(-1) == 1 and known and total % known == 0:
        shape = tuple(total // known if n == -1 else n for n in shape)
    if -1 in shape or math.prod(shape) != total:
        raise KernelError("shape", f"{total} elements of {tensor!r} do not fill the shape {list(shape)}.")
    return shape


def reshape_dim(tensor: "NkiTensor", dim: int, shape: tuple[int, ...]) -> "NkiTensor":
    dim = axis(tensor, dim)
    sizes = _filled(tensor.shape[dim], shape, tensor)
    if tensor.on_chip and dim == 0 and sizes[0] != tensor.shape[0]:
        raise _moved_partition(tensor, f"reshape_dim(0, {list(shape)})")
    strides = [tensor.strides[dim] * inner for inner in contiguous_strides(sizes)]
    return tensor.replace(
        [*tensor.shape[:dim], *sizes, *tensor.shape[dim + 1 :]],
        [*tensor.strides[:dim], *strides, *tensor.strides[dim + 1 :]],
    )


def flatten_dims(tensor: "NkiTensor", start: int, end: int) -> "NkiTensor":
    start, end = axis(tensor, start), axis(tensor, end)
    if tensor.on_chip and start == 0 and end > 0:
        raise _moved_partition(tensor, f"flatten_dims({start}, {end})")
    shape = [*tensor.shape[:start], math.prod(tensor.shape[start : end + 1]), *tensor.shape[end + 1 :]]
    strides = _joined(tensor.shape[start : end + 1], tensor.strides[start : end + 1], (shape[start],))
    if strides is None:
        raise KernelError(
            "access-pattern", f"flatten_dims({start}, {end}) of {tensor!r}: not contiguous there."
        )
    return tensor.replace(shape, [*tensor.strides[:start], *strides, *tensor.strides[end + 1 :]])


def _joined(shape: Sequence[int], strides: Sequence[int], target: Sequence[int]) -> tuple[int, ...] | None:
    """Strides of the same elements in another shape, None where no strides can say it."""
    anchor = np.lib.stride_tricks.as_strided(np.empty(1, np.uint8), tuple(shape), tuple(strides))
    reshaped = anchor.view()
    try:
        reshaped.shape = tuple(target)
    except AttributeError:
        return None
    return tuple(int(n) for n in reshaped.strides)


def reshape(tensor: "NkiTensor", shape: tuple[int, ...]) -> "NkiTensor":
    shape = _filled(tensor.size, shape, tensor)
    if tensor.on_chip and shape[0] != tensor.shape[0]:
        raise _moved_partition(tensor, f"reshape({list(shape)})")
    first = 1 if tensor.on_chip else 0
    inner = _joined(tensor.shape[first:], tensor.strides[first:], shape[first:])
    if inner is None:
        raise KernelError("access-pattern", f"reshape({list(shape)}) of {tensor!r} would have to copy.")
    return tensor.replace(shape, [*tensor.strides[:first], *inner])


def rearrange(
    tensor: "NkiTensor", src: tuple[Any, ...], dst: tuple[Any, ...], sizes: dict[str, int]
) -> "NkiTensor":
    if len(src) != tensor.ndim:
        raise KernelError(
            "shape", f"rearrange names {len(src)} dimensions of {tensor!r}, which has {tensor.ndim}."
        )
    names: list[str] = []
    for position, group in enumerate(src):
        members = (group,) if isinstance(group, str) else tuple(group)
        dim = len(names)
        if len(members) > 1:
            tensor = reshape_dim(tensor, dim, tuple(sizes.get(name, -1) for name in members))
        elif members and sizes.get(members[0], tensor.shape[dim]) != tensor.shape[dim]:
            raise KernelError(
                "shape", f"rearrange: {members[0]} is {tensor.shape[dim]} in dimension {position}."
            )
        names.extend(members)
    wanted = [name for group in dst for name in ((group,) if isinstance(group, str) else group)]
    if sorted(wanted) != sorted(names):
        raise KernelError("shape", f"rearrange from {src} to {dst} does not name the same dimensions.")
    tensor = permute(tensor, tuple(names.index(name) for name in wanted))
    for dim, group in enumerate(dst):
        if not isinstance(group, str) and len(group) > 1:
            tensor = flatten_dims(tensor, dim, dim + len(group) - 1)
    return tensor


def reinterpret(tensor: "NkiTensor", dtype: DType) -> "NkiTensor":
    old, new = tensor.dtype.itemsize, dtype.itemsize
    _check_reinterpretable(tensor, dtype)
    if old == new:
        return tensor.replace(tensor.shape, tensor.strides, dtype=dtype)
    last = tensor.shape[-1] * old
    if tensor.strides[-1] != 1 and tensor.shape[-1] != 1:
        raise KernelError(
            "access-pattern", f"view({dtype!s}) of {tensor!r}: its last dimension is not contiguous."
        )
    if last % new or any(s * old % new for s in (*tensor.strides[:-1], tensor.offset)):
        raise KernelError(
            "access-pattern", f"view({dtype!s}) of {tensor!r}: {last} bytes do not divide evenly."
        )
    strides = [*(s * old // new for s in tensor.strides[:-1]), 1]
    return tensor.replace([*tensor.shape[:-1], last // new], strides, tensor.offset * old // new, dtype)


def _check_reinterpretable(tensor: "NkiTensor", dtype: DType) -> None:
    buffer = tensor.buffer_
    kept_wide = buffer.storage.itemsize != buffer.dtype.itemsize
    if dtype is not buffer.dtype and (
        kept_wide or (not buffer.precise and dtype.is_float and dtype.itemsize < 4)
    ):
        raise KernelError(
            "relaxed-mode",
            f"{tensor!r} has no {buffer.dtype!s} bytes to see as {dtype!s} in relaxed mode: run with "
            f"precise=True.",
        )


def access_pattern(
    tensor: "NkiTensor",
    pattern: Sequence[Sequence[int]],
    offset: int | None,
    scalar_offset: Any,
    vector_offset: "NkiTensor | None",
    indirect_dim: int,
    dtype: DType | None,
) -> "NkiTensor":
    from omni_neuron.sim.memory.tensor import NkiTensor, ScalarOffset, VectorOffset

    base = tensor
    if dtype is not None and dtype is not tensor.dtype:
        _check_reinterpretable(tensor, dtype)
        start, odd = divmod(tensor.offset * tensor.dtype.itemsize, dtype.itemsize)
        if odd:
            raise KernelError(
                "access-pattern", f"ap(dtype={dtype!s}) of {tensor!r} starts inside an element."
            )
        base = tensor.replace(tensor.shape, tensor.strides, start, dtype)
    strides, shape = [int(pair[0]) for pair in pattern], [int(pair[1]) for pair in pattern]
    if not shape or min(shape) < 1:
        raise KernelError("access-pattern", f"ap({[list(p) for p in pattern]}) has a count below 1.")
    if base.on_chip and shape[0] > 1 and strides[0] != base.row_elements:
        raise KernelError(
            "access-pattern",
            f"ap of {tensor!r}: the partition stride is {strides[0]}, and must be {base.row_elements}, "
            "the elements of one partition.",
        )
    scalars = tensor.scalar_offsets
    inner = math.prod(tensor.shape[indirect_dim + 1 :])
    if scalar_offset is not None:
        if not isinstance(scalar_offset, VirtualRegister | NkiTensor):
            raise KernelError(
                "access-pattern", "scalar_offset is a 1x1 tensor or a register; use offset for an int."
            )
        scalars = (*scalars, ScalarOffset(scalar_offset, inner))
    rows = tensor.vector_offset
    if vector_offset is not None:
        if tensor.on_chip or indirect_dim != 0:
            raise KernelError(
                "access-pattern", "vector_offset gathers rows (dimension 0) of HBM tensors only."
            )
        rows = VectorOffset(vector_offset, math.prod(tensor.shape[1:]), tensor.shape[0])
    return NkiTensor(
        base.buffer_,
        shape,
        strides,
        base.offset + (offset or 0),
        base.dtype,
        scalars,
        rows,
        tensor.free_index,
    )
