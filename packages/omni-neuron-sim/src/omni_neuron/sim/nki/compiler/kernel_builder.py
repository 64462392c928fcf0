"""`nki.compiler.kernel_builder`: compiling is the check of the language, the program is the kernel."""

from typing import Any

from omni_neuron.sim.errors import KernelError
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki.kernel import Kernel, jit


def compile_kernel(kernel: Any, *inputs: Any, **options: Any) -> Kernel:
    """The kernel, ready to be called in the simulator, after a check that its Python would compile.

    KernelError with the first construct that does not compile, and where inputs or options ask for a program
    of a device. ValueError where the source cannot be read.
    """
    if not callable(kernel):
        raise KernelError("arguments", f"kernel is a {type(kernel).__name__}, and must be a function.")
    if inputs or options:
        raise KernelError(
            "launch",
            "inputs and options of compile_kernel belong to a program for a device, which is not made here: "
            "pass the kernel alone and call what comes back.",
        )
    check(kernel)
    compiled: Kernel = jit(kernel)
    return compiled
