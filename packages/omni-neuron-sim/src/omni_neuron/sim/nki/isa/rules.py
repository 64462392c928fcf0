"""Rules that many instructions share: where operands live, where they start, how much they hold."""

from typing import Any

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import current_core
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.enums import Engine

OPTIONAL = ("reduce_res", "dst_idx")
SBUF, PSUM = MemorySpace.sbuf, MemorySpace.psum
_NAMES = {
    Engine.tensor: "Tensor", Engine.vector: "Vector", Engine.scalar: "Scalar", Engine.gpsimd: "GpSimd",
    Engine.dma: "DMA", Engine.sync: "Sync", Engine.unknown: "any",
}  # fmt: skip


def is_tensor(value: Any, argument: str) -> NkiTensor:
    if not isinstance(value, NkiTensor):
        raise KernelError("operand", f"{argument} is a {type(value).__name__}, and must be a tensor.")
    return value


def choose_engine(wanted: Engine, allowed: tuple[Engine, ...]) -> Engine:
    """The engine asked for, or the first allowed one."""
    if wanted == Engine.unknown:
        return allowed[0]
    if wanted not in allowed:
        names = ", ".join(_NAMES[e] for e in allowed)
        raise KernelError("engine", f"the {_NAMES[Engine(wanted)]} engine cannot do this: use {names}.")
    return Engine(wanted)


def on_engine(engine: Engine, **operands: Any) -> None:
    """Every operand is a tensor in a memory that the engine reaches, and starts at a legal partition."""
    for argument, value in operands.items():
        if value is None and argument in OPTIONAL:
            continue
        tensor = is_tensor(value, argument)
        if not tensor.on_chip:
            raise KernelError(
                "memory-space",
                f"{argument} = {tensor!r}: engines reach SBUF and PSUM; bring it with nisa.dma_copy.",
            )
        if engine is Engine.gpsimd and tensor.buffer is PSUM:
            raise KernelError(
                "memory-space", f"{argument} = {tensor!r}: GpSimd does not reach PSUM; copy to SBUF."
            )
        partition_start(argument, tensor)


def partition_start(argument: str, tensor: NkiTensor) -> None:
    """65 to 128 partitions start at 0, 33 to 64 at 0 or 64, up to 32 at 0, 32, 64 or 96."""
    start, count = tensor.start_partition, tensor.partitions
    step = 128 if count > 64 else 64 if count > 32 else 32
    if start % step:
        legal = ", ".join(map(str, range(0, 128, step)))
        raise KernelError(
            "partition-start",
            f"{argument} = {tensor!r} covers {count} partitions from {start} on; so many start at {legal}.",
        )


def in_memory(argument: str, value: Any, *spaces: MemorySpace) -> NkiTensor:
    tensor = is_tensor(value, argument)
    if tensor.buffer not in spaces:
        raise KernelError(
            "memory-space", f"{argument} = {tensor!r} must be in {' or '.join(map(str, spaces))}."
        )
    return tensor


def one_in_psum(first: str, a: Any, second: str, b: Any) -> None:
    """Of two streamed inputs at most one may come from PSUM."""
    if isinstance(a, NkiTensor) and isinstance(b, NkiTensor) and a.buffer is b.buffer is PSUM:
        raise KernelError("memory-space", f"{first} and {second} are both in PSUM; copy one of them to SBUF.")


def same_elements(dst: NkiTensor, **operands: NkiTensor) -> None:
    """Operands have the partitions and the elements per partition of dst; ranks may differ."""
    for argument, tensor in operands.items():
        if (tensor.partitions, tensor.columns) != (dst.partitions, dst.columns):
            raise KernelError(
                "shape",
                f"{argument} = {tensor!r} holds {tensor.partitions} x {tensor.columns} elements, and "
                f"dst = {dst!r} {dst.partitions} x {dst.columns}.",
            )


def per_partition(argument: str, tensor: NkiTensor, partitions: int, columns: int = 1) -> None:
    if (tensor.partitions, tensor.columns) != (partitions, columns):
        raise KernelError(
            "shape", f"{argument} = {tensor!r} must hold {partitions} x {columns} elements, as the data asks."
        )


def needs_generation(least: int, what: str) -> None:
    core = current_core()
    if core.generation < least:
        names = {3: "trn2", 4: "trn3"}
        raise KernelError(
            "generation",
            f"{what} needs {names[least]}, and the target is {core.world.target}: see "
            "NEURON_PLATFORM_TARGET_OVERRIDE.",
        )
