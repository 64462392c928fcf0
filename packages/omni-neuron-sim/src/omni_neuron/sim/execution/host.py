"""Arguments and results: numpy, torch and jax arrays on the outside, HBM tensors inside."""

import importlib
from typing import Any

import numpy as np
import torch

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import Core
from omni_neuron.sim.memory.access import read
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.numerics.formats import Array, DType, as_dtype, bool_, encode, storage_of, to_float32

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
_NO_NUMPY = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


def is_array(value: Any) -> bool:
    """Whether an argument becomes a tensor in HBM."""
    return isinstance(value, np.ndarray | torch.Tensor) or type(value).__module__.split(".")[0] in (
        "jax",
        "jaxlib",
    )


def framework(values: list[Any]) -> str:
    """Whose arrays the results are: those of the arguments."""
    if any(isinstance(v, torch.Tensor) for v in values):
        return "torch"
    if any(is_array(v) and not isinstance(v, np.ndarray) for v in values):
        return "jax"
    return "numpy"


def to_numpy(value: Any) -> tuple[Array, DType]:
    """Elements as they are stored, and their NKI dtype. KernelError for dtypes that NKI lacks."""
    try:
        dtype = as_dtype(value.dtype)
    except TypeError as error:
        raise KernelError("arguments", str(error)) from None
    if isinstance(value, torch.Tensor):
        host = value.detach().cpu().contiguous()
        if host.dtype in _NO_NUMPY:
            array = host.view(_BITS[host.element_size()]).numpy().view(dtype.storage)
        else:
            array = host.numpy()
    else:
        array = np.asarray(value)
    return (array.astype(np.uint8) if dtype is bool_ else array), dtype


def place_argument(core: Core, name: str, value: Any) -> NkiTensor:
    """An argument as a tensor in shared HBM."""
    array, dtype = to_numpy(value)
    if array.ndim == 0:
        array = array.reshape(1)
    kept = array if storage_of(dtype, core.world.precise) == array.dtype else to_float32(array)
    return NkiTensor.whole(core.allocate(array.shape, dtype, MemorySpace.shared_hbm, name, None, kept))


def from_stored(stored: Array, dtype: DType, target: str) -> Any:
    """Stored elements as an array of the caller's framework."""
    array = stored.astype(np.bool_) if dtype is bool_ else np.ascontiguousarray(stored)
    if target == "torch":
        if array.dtype.isbuiltin != 1:
            bits = torch.from_numpy(
                array.view(np.dtype(f"i{array.itemsize}" if array.itemsize > 1 else "u1"))
            )
            name = str(dtype)
            return bits.view(getattr(torch, name)) if hasattr(torch, name) else bits
        return torch.from_numpy(array.copy())
    if target == "jax":
        return importlib.import_module("jax.numpy").asarray(array)
    return array


def result(value: Any, target: str) -> Any:
    """What a kernel returned, as arrays. Every tensor must be in shared_hbm and defined throughout."""
    if isinstance(value, list | tuple):
        return tuple(result(v, target) for v in value)
    if not isinstance(value, NkiTensor):
        return value
    if value.buffer is not MemorySpace.shared_hbm:
        raise KernelError(
            "output-space",
            f"the kernel returns {value!r}: outputs are allocated with buffer=nl.shared_hbm.",
            where=value.buffer_.allocation.where,
        )
    if value.buffer_.exchanged:
        raise KernelError(
            "collective",
            f"the kernel returns {value!r}, which a collective moved: copy it to a tensor of its own.",
            where=value.buffer_.allocation.where,
        )
    content = read(value)
    return from_stored(np.array(content.values), value.dtype, target)


def check_defined(value: Any, core: Core) -> None:
    """KernelError where a returned tensor holds anything undefined."""
    if isinstance(value, list | tuple):
        for one in value:
            check_defined(one, core)
    elif isinstance(value, NkiTensor):
        content = read(value)
        if content.undefined is not None:
            at = tuple(int(i) for i in np.argwhere(content.undefined)[0])
            origin = core.world.origins.describe(int(content.undefined[at]))
            count = int((content.undefined != 0).sum())
            raise KernelError(
                "uninitialised",
                f"{count} elements of the result {value!r}, the first at {list(at)}, are not defined: "
                f"{origin}. With allow_undefined=True they come back as poison.",
                where=value.buffer_.allocation.where,
            )


def copy_back(original: Any, tensor: NkiTensor) -> None:
    """What a kernel wrote into an argument, into the caller's array."""
    stored = np.array(read(tensor).values)
    if isinstance(original, torch.Tensor):
        kept = stored if stored.dtype == tensor.dtype.storage else encode(stored, tensor.dtype)
        with torch.no_grad():
            original.copy_(from_stored(kept, tensor.dtype, "torch").reshape(original.shape))
    elif isinstance(original, np.ndarray):
        original[...] = stored.reshape(original.shape).astype(original.dtype)
