"""The constants of the cost model, frozen: a kernel is tuned against them, never they to a kernel.

Sources, besides those of `omni_neuron.sim.machine` (clocks, DMA engines, links):
  [perf]   NKI performance guide and architecture guides of the Neuron SDK
  [dma]    NKI guide to DMA bandwidth
  [kernel] comments in public kernels and their documentation
  [fit]    chosen so that the utilisations reported for two published attention kernels come out
  [choice] nothing is published; a round number
"""

INSTRUCTION_CYCLES = 64  # [perf] overhead: fewer elements per partition cost as much as so many

# Vector engine, elements per cycle of a lane
COPY_RATE_16BIT = 4  # [perf] tensor_copy and tensor_scalar, 16 bits, SBUF to SBUF, from trn2 on
TENSOR_TENSOR_RATE_16BIT = 2  # [perf]
PSUM_RATE_DIVISOR = 2  # [perf] one operand in PSUM halves the gain
TWO_FP32_STREAMS_CYCLES = 2.0  # [perf] "more" for two fp32 inputs; the factor is [choice]
RECIPROCAL_CYCLES = 8.0  # [perf]

# Scalar engine
SCALAR_RATE_16BIT_TRN3 = 2  # [perf] 256 lanes for narrow types
EXPONENTIAL_RATE_TRN3 = 4  # [perf] the Vector engine's exponential beside the Scalar one

# GpSimd
GPSIMD_CYCLES = 2.0  # per element [choice]
GPSIMD_RSQRT_CYCLES = 4.0  # [perf] about four times the Scalar engine
PARTITION_REDUCE_CYCLES = 4.0  # per element of a partition [choice]

# DMA
DMA_START_S = 1.3e-6  # [dma] from the trigger to the first byte
DMA_RUN_OVERHEAD_BYTES = 512  # [dma] 2 KiB runs near, 4 KiB at the full rate: 80 % and 89 %
DMA_TRANSPOSE_RATE = 0.38  # of the bandwidth of a copy [fit]

# Collectives
HOP_S = 2e-6  # [kernel] per hop, when the trigger is timely

MATMUL_CYCLES = 64  # [perf] a matmul takes max(N, 64) cycles
