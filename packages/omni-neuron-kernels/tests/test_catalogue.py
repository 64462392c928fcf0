"""Levels 0 and 1 of every kernel: the twin beside float64, the kernel beside its twin, on both LNC."""

import subprocess
import sys
from functools import lru_cache

import pytest

from omni_neuron.kernels.catalogue import KERNELS
from omni_neuron.kernels.operator import load
from omni_neuron.kernels.proof import prove
from omni_neuron.kernels.spec import Case
from omni_neuron.sim.lint import lint

CASES = [
    pytest.param(name, index, id=f"{name}: {case.title}")
    for name, spec in KERNELS.items()
    for index, case in enumerate(spec.cases())
]
WITHOUT_NKI = """
import sys
from omni_neuron.kernels.catalogue import KERNELS
print(len(KERNELS), "omni_neuron.kernels.nki" in sys.modules)
"""


@lru_cache(maxsize=1)
def cases(name: str) -> tuple[Case, ...]:
    """Those of the kernel whose turn it is; making them costs more than some proofs."""
    return KERNELS[name].cases()


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize(("name", "index"), CASES)
def test_levels_0_and_1(name: str, index: int, lnc: int) -> None:
    proof = prove(KERNELS[name], cases(name)[index], lnc)
    assert proof.twin_error <= proof.twin_bar
    assert proof.kernel_error <= proof.kernel_bar


@pytest.mark.parametrize("name", KERNELS)
def test_the_source_is_python_that_compiles(name: str) -> None:
    assert [str(finding) for finding in lint(load(KERNELS[name].source))] == []


def test_the_catalogue_needs_no_nki() -> None:
    """Neither the compiler nor the interpreter: twins and `kernels ls` work where both are absent."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NKI], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == [str(len(KERNELS)), "False"]
