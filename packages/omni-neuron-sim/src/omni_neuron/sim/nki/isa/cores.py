"""Instructions with which the two cores of a logical core meet."""

from collections.abc import Sequence
from typing import Any

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.execution.core import Core, current_core
from omni_neuron.sim.execution.world import Member
from omni_neuron.sim.memory.access import Content, read, write
from omni_neuron.sim.memory.spaces import MemorySpace
from omni_neuron.sim.memory.tensor import NkiTensor
from omni_neuron.sim.nki.isa.enums import DmaEngine, Engine
from omni_neuron.sim.nki.isa.instruction import Work, instruction
from omni_neuron.sim.nki.isa.rules import in_memory

GPSIMD_BYTES = {4: 1024, 2: 512, 1: 256}


def _pair(core: Core, what: str) -> tuple[Member, ...]:
    if core.lnc != 2:
        raise KernelError(
            "lnc", f"{what} joins the two cores of a logical core, and this launch has lnc = {core.lnc}."
        )
    return ((core.rank, 0), (core.rank, 1))


@instruction
def core_barrier(
    data: Any, cores: Sequence[int], engine: Engine = Engine.gpsimd, name: str | None = None
) -> Work:
    """Both cores wait for each other; writes to `data` in shared HBM before it are seen after it."""
    core = current_core()
    members = _pair(core, "nisa.core_barrier")
    if tuple(cores) != (0, 1):
        raise KernelError("lnc", f"cores = {tuple(cores)}, and must be (0, 1).")
    tensors = tuple(data) if isinstance(data, list | tuple) else (data,)
    for tensor in tensors:
        in_memory("data", tensor, MemorySpace.shared_hbm, MemorySpace.private_hbm)
    key = ("cores", core.rank)
    core.world.meet(core, key, members, "nisa.core_barrier", "core_barrier", _same_kind)
    return Work(engine, tensors, tensors, meeting=(key, members))


def _same_kind(payloads: dict[Member, Any]) -> dict[Member, Any]:
    kinds = {str(p if isinstance(p, str) else p[0]) for p in payloads.values()}
    if len(kinds) > 1:
        raise KernelError(
            "lnc-divergence", f"the two cores meet in different instructions: {' and '.join(sorted(kinds))}."
        )
    return {}


@instruction
def sendrecv(
    src: NkiTensor,
    dst: NkiTensor,
    send_to_rank: int,
    recv_from_rank: int,
    pipe_id: int,
    dma_engine: DmaEngine = DmaEngine.dma,
    name: str | None = None,
) -> Work:
    """Exchange SBUF tiles with the sibling core; calls with one pipe_id meet in the order they are made."""
    core = current_core()
    members = _pair(core, "nisa.sendrecv")
    in_memory("src", src, MemorySpace.sbuf)
    in_memory("dst", dst, MemorySpace.sbuf)
    other = 1 - core.core_id
    if (send_to_rank, recv_from_rank) != (other, other):
        raise KernelError(
            "lnc",
            f"core {core.core_id} sends to {send_to_rank} and receives from {recv_from_rank}: both "
            f"are {other}.",
        )
    if src.shape != dst.shape or src.dtype is not dst.dtype:
        raise KernelError("shape", f"src = {src!r} and dst = {dst!r} must have one shape and dtype.")
    if dma_engine is DmaEngine.gpsimd_dma and src.columns * src.itemsize > GPSIMD_BYTES.get(src.itemsize, 0):
        raise KernelError(
            "shape",
            f"gpsimd_dma carries {GPSIMD_BYTES.get(src.itemsize, 0)} bytes per partition of this dtype, "
            f"and src = {src!r} has {src.columns * src.itemsize}.",
        )
    content = read(src)
    sent = Content(content.values.copy(), content.undefined)
    key = ("sendrecv", core.rank, pipe_id)
    payload = ("sendrecv", src.shape, src.dtype, sent)
    received = core.world.meet(core, key, members, f"nisa.sendrecv (pipe {pipe_id})", payload, _exchange)
    write(dst, received.values, received.undefined)
    return Work(Engine.dma, (dst,), (src,), meeting=(key, members))


def _exchange(payloads: dict[Member, Any]) -> dict[Member, Any]:
    (a, first), (b, second) = payloads.items()
    if first[1:3] != second[1:3]:
        raise KernelError(
            "shape",
            f"core {a[1]} sends {list(first[1])} {first[2]} and core {b[1]} {list(second[1])} {second[2]}.",
        )
    return {a: second[3], b: first[3]}
