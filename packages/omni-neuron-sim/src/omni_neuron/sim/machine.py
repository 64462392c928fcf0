"""Published limits and rates of NeuronCores and of the chips that hold them.

Sources, all public AWS documentation of the Neuron SDK:
  [arch]   NKI architecture guides of NeuronCore-v2, v3 and v4
  [isa]    NKI instruction reference: `nc_matmul`, `nl.tile_size`
  [dma]    NKI guide to the DMA engines
  [chip]   hardware pages of Trainium, Trainium2 and Trainium3
  [lnc]    page on the logical NeuronCore configuration
  [kernel] comments in public kernels; AWS documents no number

A rate that a page gives in two roundings is kept as the one of [arch]. Bytes are bytes, rates are per second.
"""

from dataclasses import dataclass
from typing import Literal

Generation = Literal["trn1", "trn2", "trn3"]

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
GHZ, TERA, GIGA = 1e9, 1e12, 1e9


@dataclass(frozen=True)
class OnChipMemory:
    """SBUF and PSUM of one core."""

    partitions: int  # [arch]
    sbuf_partition_bytes: int  # [arch]
    sbuf_usable_partition_bytes: int | None  # [kernel]; None where no source states it
    psum_partition_bytes: int  # [arch]
    psum_banks: int  # [arch]

    @property
    def sbuf_bytes(self) -> int:
        return self.partitions * self.sbuf_partition_bytes

    @property
    def psum_bytes(self) -> int:
        return self.partitions * self.psum_partition_bytes

    @property
    def psum_bank_bytes(self) -> int:
        """One bank of one partition."""
        return self.psum_partition_bytes // self.psum_banks


@dataclass(frozen=True)
class TensorEngine:
    """The systolic array: `dst[M, N] += stationary[K, M].T @ moving[K, N]`."""

    clock_hz: float  # [arch]
    rows: int  # largest K [isa]
    columns: int  # largest M [isa]
    moving_columns_fp32: int  # largest N into an fp32 destination [isa]
    moving_columns_bf16: int | None  # into a bf16 destination [isa]; None where there is no such destination
    bf16_flops: float  # dense [arch]
    fp8_flops: float | None  # dense, MX formats on trn3 [arch]; None where [arch] names no rate
    fp32_flops: float  # [arch]


@dataclass(frozen=True)
class Clocks:
    """Clock rates of the other engines [arch]."""

    vector_hz: float
    scalar_hz: float
    gpsimd_hz: float


@dataclass(frozen=True)
class DmaEngines:
    """The DMA engines that belong to one core [dma]."""

    count: int
    bytes_per_s_each: float

    @property
    def bytes_per_s(self) -> float:
        return self.count * self.bytes_per_s_each


@dataclass(frozen=True)
class Core:
    """One physical NeuronCore."""

    version: int  # NeuronCore-v2, v3, v4
    memory: OnChipMemory
    tensor: TensorEngine
    clocks: Clocks
    dma: DmaEngines
    registers_per_sequencer: int = 64  # 32 bits each [isa]


@dataclass(frozen=True)
class Chip:
    """One chip, and how its cores form the logical ones that a rank runs on."""

    core: Core
    cores: int  # [chip]
    logical_core_sizes: tuple[int, ...]  # physical cores per logical one [lnc]
    hbm_bytes: int  # [chip]
    hbm_bytes_per_s: float  # [chip]
    bf16_flops: float  # dense [chip]
    fp8_flops: float  # dense [chip]
    fp32_flops: float  # [chip]
    link_bytes_per_s: float  # NeuronLink [chip]

    def logical_cores(self, size: int) -> int:
        """How many logical cores of `size` physical ones; ValueError where the chip cannot form them."""
        if size not in self.logical_core_sizes:
            raise ValueError(
                f"A logical core of {size} physical ones does not exist: use {self.logical_core_sizes}."
            )
        return self.cores // size

    def hbm_bytes_per_logical_core(self, size: int) -> int:
        return self.hbm_bytes // self.logical_cores(size)


def _memory(sbuf_partition_kib: int, usable_kib: int | None) -> OnChipMemory:
    usable = None if usable_kib is None else usable_kib * KIB
    return OnChipMemory(128, sbuf_partition_kib * KIB, usable, 16 * KIB, 8)


CHIPS: dict[Generation, Chip] = {
    "trn1": Chip(
        core=Core(
            version=2,
            memory=_memory(192, None),
            tensor=TensorEngine(2.8 * GHZ, 128, 128, 512, None, 92 * TERA, None, 23 * TERA),
            clocks=Clocks(1.12 * GHZ, 1.4 * GHZ, 1.4 * GHZ),
            dma=DmaEngines(16, 17 * GIGA),
        ),
        cores=2,
        logical_core_sizes=(1,),
        hbm_bytes=32 * GIB,
        hbm_bytes_per_s=820 * GIGA,
        bf16_flops=190 * TERA,
        fp8_flops=190 * TERA,
        fp32_flops=47.5 * TERA,
        link_bytes_per_s=384 * GIGA,
    ),
    "trn2": Chip(
        core=Core(
            version=3,
            memory=_memory(224, 208),
            tensor=TensorEngine(2.4 * GHZ, 128, 128, 512, None, 79 * TERA, 158 * TERA, 20 * TERA),
            clocks=Clocks(0.96 * GHZ, 1.2 * GHZ, 1.2 * GHZ),
            dma=DmaEngines(16, 23 * GIGA),
        ),
        cores=8,
        logical_core_sizes=(1, 2),
        hbm_bytes=96 * GIB,
        hbm_bytes_per_s=2.9 * TERA,
        bf16_flops=667 * TERA,
        fp8_flops=1299 * TERA,
        fp32_flops=181 * TERA,
        link_bytes_per_s=1.28 * TERA,
    ),
    "trn3": Chip(
        core=Core(
            version=4,
            memory=_memory(256, 240),
            tensor=TensorEngine(2.4 * GHZ, 128, 128, 4096, 8192, 79 * TERA, 315 * TERA, 20 * TERA),
            clocks=Clocks(1.2 * GHZ, 1.2 * GHZ, 1.2 * GHZ),
            dma=DmaEngines(16, 33 * GIGA),
        ),
        cores=8,
        logical_core_sizes=(1, 2),
        hbm_bytes=144 * GIB,
        hbm_bytes_per_s=4.9 * TERA,
        bf16_flops=671 * TERA,
        fp8_flops=2517 * TERA,
        fp32_flops=183 * TERA,
        link_bytes_per_s=2.56 * TERA,
    ),
}
