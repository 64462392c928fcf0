"""Making tensors, and what of the memories a kernel may ask (`nl.tile_size`)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from omni_neuron.sim import envs
from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import current_core, running
from omni_neuron.sim.machine import CHIPS, OnChipMemory
from omni_neuron.sim.memory.access import write
from omni_neuron.sim.memory.placement import usable_sbuf
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.memory.tensor import MAX_DIMENSIONS, NkiTensor
from omni_neuron.sim.numerics.formats import DType, as_dtype, encode, float32, uint8

PARTITIONS = 128


def _machine() -> Any:
    return current_core().chip.core if running() else CHIPS[envs.target()].core


class _TileSize:
    """Limits of tiles, for the target of the running kernel."""

    pmax = PARTITIONS
    gemm_stationary_fmax = 128
    gemm_moving_fmax = 512
    bn_stats_fmax = 512
    psum_bank_fmax = psum_fmax = 512
    psum_bank_fmax_bytes = psum_fmax_bytes = 2048
    psum_min_align = 4
    sbuf_min_align = 1

    @property
    def psum_num_banks(self) -> int:
        """PSUM banks that a kernel may use."""
        return 7 if envs.transposes_on_pe() else 8

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Bytes of a partition that a kernel may use."""
        return usable_sbuf(_machine().memory)

    @property
    def sbuf_fmax(self) -> int:
        """The same in fp32 elements."""
        return self.sbuf_fmax_bytes // 4

    @property
    def sbuf_size_bytes(self) -> int:
        """Bytes of all partitions that a kernel may use."""
        return self.sbuf_fmax_bytes * PARTITIONS

    @property
    def total_available_sbuf_size(self) -> int:
        return self.sbuf_fmax_bytes


tile_size = _TileSize()


class fp32:  # noqa: N801 - NKI's name
    """The finite range of float32."""

    min = float(np.finfo(np.float32).min)
    max = float(np.finfo(np.float32).max)


def _check(
    shape: tuple[int, ...], dtype: DType, space: MemorySpace, address: Any, memory: OnChipMemory
) -> None:
    if not 1 <= len(shape) <= MAX_DIMENSIONS or min(shape) < 1:
        raise KernelError(
            "shape", f"shape = {list(shape)}: one to {MAX_DIMENSIONS} dimensions of at least 1."
        )
    if not space.on_chip:
        if address is not None:
            raise KernelError("address", f"address = {address}: only SBUF and PSUM are placed by hand.")
        return
    if shape[0] > PARTITIONS:
        raise KernelError(
            "partitions", f"shape = {list(shape)}: dimension 0 is the partition, of which there are 128."
        )
    row = math.prod(shape[1:]) * dtype.itemsize
    limit = usable_sbuf(memory) if space is MemorySpace.sbuf else memory.psum_partition_bytes
    partition, start = address if address is not None else (0, 0)
    if start + row > limit or start < 0:
        rule = "sbuf-capacity" if space is MemorySpace.sbuf else "psum-capacity"
        raise KernelError(
            rule,
            f"{list(shape)} {dtype!s} covers bytes {start} to {start + row} of a partition with "
            f"{limit} usable.",
        )
    if partition % 32 or not 0 <= partition <= PARTITIONS - shape[0]:
        raise KernelError(
            "address", f"address = {address}: {shape[0]} partitions start at a multiple of 32 below 128."
        )
    if space is MemorySpace.psum and start % memory.psum_bank_bytes:
        raise KernelError(
            "psum-bank",
            f"address = {address}: PSUM tensors start at a bank, a multiple of "
            f"{memory.psum_bank_bytes} bytes.",
        )


def allocate(
    shape: Any, dtype: Any, buffer: MemorySpace = MemorySpace.sbuf, name: str = "", address: Any = None
) -> NkiTensor:
    """An uninitialised tensor; see `ndarray`."""
    core = current_core()
    sizes = (int(shape),) if isinstance(shape, int | np.integer) else tuple(int(n) for n in shape)
    try:
        kind = as_dtype(dtype)
    except TypeError as error:
        raise KernelError("dtype", str(error)) from None
    if not isinstance(buffer, MemorySpace):
        raise KernelError(
            "memory-space", f"buffer = {buffer!r}: use nl.sbuf, nl.psum, nl.hbm or nl.shared_hbm."
        )
    place = None if address is None else (int(address[0]), int(address[1]))
    _check(sizes, kind, buffer, place, core.chip.core.memory)
    return NkiTensor.whole(core.allocate(sizes, kind, buffer, name or "", place))


class _Allocating(type):
    """`nl.ndarray` is called to allocate, and also stands as the type of every tensor."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return allocate(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, NkiTensor)


class ndarray(NkiTensor, metaclass=_Allocating):  # noqa: N801 - NKI's name
    """`nl.ndarray(shape, dtype, buffer=nl.sbuf, name="", address=None)`: a tensor that nothing is written
    to yet.

    On chip dimension 0 is the partition. `address` is (first partition, first byte of a partition); tensors
    whose addresses overlap share bytes. Without one the compiler places the tensor.
    """


def full(
    shape: Any, fill_value: Any, dtype: Any, buffer: MemorySpace = MemorySpace.sbuf, name: str = ""
) -> NkiTensor:
    """A tensor of one value."""
    tensor = allocate(shape, dtype, buffer, name)
    if tensor.on_chip:
        from omni_neuron.sim.nki.isa import memset  # an instruction like any other, with its cost

        memset(tensor, int(fill_value) if tensor.dtype.kind != "float" else float(fill_value))
    elif not tensor.buffer_.complete:
        value = encode(np.full((1,), fill_value), tensor.dtype, tensor.buffer_.precise)
        write(tensor, np.broadcast_to(value, tensor.shape))
    return tensor


def zeros(shape: Any, dtype: Any, buffer: MemorySpace = MemorySpace.sbuf, name: str = "") -> NkiTensor:
    return full(shape, 0, dtype, buffer, name)


def ones(shape: Any, dtype: Any, buffer: MemorySpace = MemorySpace.sbuf, name: str = "") -> NkiTensor:
    return full(shape, 1, dtype, buffer, name)


def zeros_like(
    x: NkiTensor, dtype: Any = None, buffer: MemorySpace | None = None, name: str = ""
) -> NkiTensor:
    return full(x.shape, 0, dtype or x.dtype, buffer or x.buffer, name)


def empty_like(
    x: NkiTensor, dtype: Any = None, buffer: MemorySpace | None = None, name: str = ""
) -> NkiTensor:
    return allocate(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def shared_constant(constant: Any, dtype: Any = None) -> NkiTensor:
    """A constant in HBM, from a numpy array or the path of a .npy file."""
    array = np.load(constant) if isinstance(constant, str) else np.asarray(constant)
    kind = as_dtype(dtype if dtype is not None else array.dtype)
    content = encode(array, kind, current_core().world.precise)
    return NkiTensor.whole(
        current_core().allocate(array.shape, kind, MemorySpace.private_hbm, "constant", None, content)
    )


def shared_identity_matrix(n: int, dtype: Any = uint8) -> NkiTensor:
    """The identity of n rows in SBUF."""
    tensor = allocate((n, n), dtype, MemorySpace.sbuf, "identity")
    write(tensor, encode(np.eye(n, dtype=np.float32), tensor.dtype, tensor.buffer_.precise))
    current_core().touch(tensor.buffer_)
    return tensor


def rand(shape: Sequence[int], dtype: Any = float32) -> NkiTensor:
    """Uniform numbers in [0, 1) in SBUF."""
    tensor = allocate(tuple(shape), dtype, MemorySpace.sbuf)
    drawn = current_core().random.next().random(tensor.shape, dtype=np.float32)
    write(tensor, encode(drawn, tensor.dtype, tensor.buffer_.precise))
    return tensor
