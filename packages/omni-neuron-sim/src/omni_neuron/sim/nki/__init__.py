"""NKI 0.6 on the CPU: `import omni_neuron.sim.nki as nki` stands in for `import nki`."""

from typing import Any

from omni_neuron.sim.nki import collectives, compiler, isa, language, simulator, typing
from omni_neuron.sim.nki.kernel import Kernel, jit, simulate
from omni_neuron.sim.nki.removed import NKI, missing
from omni_neuron.sim.numerics.formats import DType

__version__ = "0.6.0"

dtype = DType


def __getattr__(name: str) -> Any:
    """Names of older versions say what took their place."""
    raise missing("nki", name, NKI)


__all__ = [
    "Kernel",
    "collectives",
    "compiler",
    "dtype",
    "isa",
    "jit",
    "language",
    "simulate",
    "simulator",
    "typing",
]
