"""Launches in the interpreter of kernels, on as many ranks as a case has."""

from collections.abc import Sequence
from typing import Any

from omni_neuron.kernels.operator import load
from omni_neuron.kernels.spec import Arguments, Case, KernelSpec, Results, as_results
from omni_neuron.runtime import envs
from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.runtime.errors import SetupError


def interpret(
    spec: KernelSpec, ranks: Sequence[Arguments], lnc: int = 1, target: str = "trn2"
) -> list[Results]:
    """The kernel's results in the interpreter, one tuple for each rank."""
    run = simulator().simulate
    found = run(load(spec.source), *per_rank(ranks), lnc=lnc, ranks=len(ranks), target=target)
    return [as_results(value) for value in (found if len(ranks) > 1 else [found])]


def profiled(spec: KernelSpec, case: Case, lnc: int = 1, target: str = "trn2") -> Any:
    """The interpreter's prediction of what the case costs: its `Profile`."""
    run = simulator().profile
    kernel = load(spec.source)
    flops = case.flops or None
    return run(
        kernel, *per_rank(case.ranks), lnc=lnc, ranks=len(case.ranks), target=target, useful_flops=flops
    )


def simulator() -> Any:
    """The interpreter's launches. SetupError where none is installed, or where devices run the kernels."""
    found = getattr(get_adapter().nki(), "simulator", None)
    if not hasattr(found, "profile"):
        raise SetupError(
            f"This process compiles kernels for Neuron devices, and proofs need the interpreter: install "
            f"omni-neuron-sim and set {envs.cpu_mode.name}=1."
        )
    return found


def per_rank(ranks: Sequence[Arguments]) -> tuple[Any, ...]:
    """Arguments of a launch: those of the one rank, or for each position the values of all ranks."""
    if len(ranks) == 1:
        return ranks[0]
    gather = simulator().PerRank
    return tuple(gather(values) for values in zip(*ranks, strict=True))
