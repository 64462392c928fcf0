"""Constants of `nki.isa`, with the values of the public stubs where those state one."""

from enum import Enum, IntEnum, StrEnum

from omni_neuron.sim import envs
from omni_neuron.sim.execution.core import GENERATION, current_core, running


class Engine(IntEnum):
    """Which engine executes an instruction; `unknown` leaves the choice to the compiler."""

    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6


class ReduceCmd(IntEnum):
    """What an instruction does with the reduction registers."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class OobMode(Enum):
    """What a DMA does with a row index out of range."""

    error = "error"
    skip = "skip"


class DgeMode(Enum):
    """Who makes the descriptors of a DMA."""

    unknown = "unknown"
    none = "none"
    swdge = "swdge"
    hwdge = "hwdge"


class DmaEngine(Enum):
    """Which DMA carries a sendrecv."""

    dma = "dma"
    gpsimd_dma = "gpsimd_dma"


class PerfMode(StrEnum):
    """Fast modes of the PE array."""

    none = "none"
    double_row = "double_row"


class NcVersion(IntEnum):
    """NeuronCore generations, in order."""

    gen2 = 2
    gen3 = 3
    gen4 = 4


def get_nc_version() -> NcVersion:
    """The generation that the kernel is traced for; outside of a kernel that of the default target."""
    return NcVersion(current_core().generation if running() else GENERATION[envs.target()])


engine, reduce_cmd, oob_mode, dge_mode = Engine, ReduceCmd, OobMode, DgeMode
dma_engine, matmul_perf_mode, nc_version = DmaEngine, PerfMode, NcVersion

tensor_engine, vector_engine, scalar_engine = Engine.tensor, Engine.vector, Engine.scalar
gpsimd_engine, sync_engine, unknown_engine = Engine.gpsimd, Engine.sync, Engine.unknown
