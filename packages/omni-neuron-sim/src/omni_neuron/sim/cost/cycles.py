"""How long one instruction keeps its engine busy."""

from dataclasses import dataclass

from omni_neuron.sim.cost import constants as c
from omni_neuron.sim.cost.trace import Event, Operand
from omni_neuron.sim.machine import Chip
from omni_neuron.sim.memory.spaces import MemorySpace

FAST_COPIES = ("tensor_copy", "tensor_scalar", "memset")


@dataclass(frozen=True)
class Duration:
    """Seconds that the engine is taken, and seconds until the result can be used."""

    busy_s: float
    latency_s: float


def clock_hz(engine: str, chip: Chip) -> float:
    clocks = chip.core.clocks
    rates = {"tensor": chip.core.tensor.clock_hz, "vector": clocks.vector_hz, "scalar": clocks.scalar_hz}
    return rates.get(engine, clocks.gpsimd_hz)


def duration(event: Event, chip: Chip) -> Duration:
    """Time of an instruction that waits for nobody."""
    if event.engine == "dma":
        return _dma(event, chip)
    cycles = _cycles(event, chip.core.version)
    seconds = cycles / clock_hz(event.engine, chip)
    return Duration(seconds, seconds)


def _cycles(event: Event, version: int) -> float:
    if event.engine == "tensor":
        return max(_moving_columns(event), c.MATMUL_CYCLES) * event.passes
    if event.opcode == "core_barrier":  # names the tensor that it orders, and touches none of it
        return c.INSTRUCTION_CYCLES
    columns = max((operand.columns for operand in (*event.writes, *event.reads)), default=0)
    each = _per_element(event, version)
    return max(columns * each, c.INSTRUCTION_CYCLES * min(each, 1.0))


def _moving_columns(event: Event) -> int:
    if event.opcode == "nc_transpose":
        return event.reads[0].shape[0]
    return event.reads[1].columns


def _narrow(operands: tuple[Operand, ...]) -> bool:
    return all(operand.dtype.itemsize <= 2 for operand in operands)


def _per_element(event: Event, version: int) -> float:
    tiles = tuple(o for o in (*event.writes, *event.reads) if o.columns > 1) or event.writes
    if event.engine == "gpsimd":
        if event.opcode == "tensor_partition_reduce":
            return c.PARTITION_REDUCE_CYCLES
        return c.GPSIMD_RSQRT_CYCLES if event.opcode == "tensor_scalar" else c.GPSIMD_CYCLES
    if event.engine == "scalar":
        return 1 / c.SCALAR_RATE_16BIT_TRN3 if version >= 4 and _narrow(tiles) else 1.0
    if event.opcode == "reciprocal":
        return c.RECIPROCAL_CYCLES
    if event.opcode == "exponential":
        return 1 / c.EXPONENTIAL_RATE_TRN3
    in_psum = any(o.space is MemorySpace.psum for o in tiles)
    if version >= 3 and _narrow(tiles) and event.opcode in (*FAST_COPIES, "tensor_tensor"):
        rate = c.COPY_RATE_16BIT if event.opcode in FAST_COPIES else c.TENSOR_TENSOR_RATE_16BIT
        return 1 / max(rate / (c.PSUM_RATE_DIVISOR if in_psum else 1), 1)
    wide = [o for o in event.reads if o.columns > 1 and o.dtype.itemsize == 4]
    return c.TWO_FP32_STREAMS_CYCLES if len(wide) > 1 and not in_psum else 1.0


def dma_bytes(event: Event) -> int:
    """Bytes that a DMA writes."""
    return sum(operand.bytes for operand in event.writes)


def _dma(event: Event, chip: Chip) -> Duration:
    """Runs of contiguous bytes, spread over the DMA engines; each run costs as much as 512 more bytes."""
    moved = max([operand.bytes for operand in (*event.writes, *event.reads)], default=0)
    run = min((o.run_bytes for o in (*event.writes, *event.reads)), default=1)
    runs = max(moved / max(run, 1), 1)
    rate = chip.core.dma.bytes_per_s * (c.DMA_TRANSPOSE_RATE if event.opcode == "dma_transpose" else 1.0)
    overhead = 0 if event.opcode == "dma_transpose" else runs * c.DMA_RUN_OVERHEAD_BYTES
    busy = (moved + overhead) / rate
    engines = chip.core.dma.count
    alone = busy * engines / min(runs, engines)
    return Duration(busy, c.DMA_START_S + alone)


def collective_s(event: Event, ranks: int, chip: Chip, lnc: int) -> float:
    """Hops and bytes sent per rank over the share of the link that a logical core has."""
    sent = sum(operand.bytes for operand in event.reads)
    received = sum(operand.bytes for operand in event.writes)
    share = {
        "all_reduce": (2 * (ranks - 1) / ranks * sent, 2 * (ranks - 1)),
        "all_gather": ((ranks - 1) / ranks * received, ranks - 1),
        "reduce_scatter": ((ranks - 1) / ranks * sent, ranks - 1),
        "all_to_all": ((ranks - 1) / ranks * sent, 1),
    }
    payload, hops = share.get(event.opcode, (sent, 1))
    link = chip.link_bytes_per_s / chip.cores * lnc
    return hops * c.HOP_S + payload / link
