"""`nki.compiler.kernel_builder`: building programs for a device, which a simulator cannot do."""

from typing import Any, NoReturn

from omni_neuron.sim.errors import KernelError


def compile_kernel(*_: Any, **__: Any) -> NoReturn:
    """Refused: nothing is compiled here."""
    raise KernelError(
        "launch", "compile_kernel makes a program for a device; here kernels run by nki.simulate."
    )
