from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import KernelError
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.nki.compiler.kernel_builder import compile_kernel

X = np.ones((4, 8), np.float32)


def doubled(x: Any) -> Any:
    tile, out = nl.load(x), nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.tensor_tensor(tile, tile, tile, nl.add)
    nisa.dma_copy(out, tile)
    return out


def with_sum(x: Any) -> Any:
    assert sum(x.shape) > 0
    return doubled(x)


def test_a_compiled_kernel_runs() -> None:
    np.testing.assert_array_equal(compile_kernel(doubled)(X), 2 * X)


def test_what_does_not_compile_is_refused_with_its_line() -> None:
    with pytest.raises(KernelError, match=r"sum\(\): not among the builtins") as caught:
        compile_kernel(with_sum)
    assert caught.value.rule == "language"
    assert caught.value.where.line == with_sum.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    ("arguments", "options", "rule"),
    [((None,), {}, "arguments"), ((doubled, X), {}, "launch"), ((doubled,), {"target": "trn2"}, "launch")],
)
def test_programs_for_a_device_are_not_made(arguments: Any, options: Any, rule: str) -> None:
    with pytest.raises(KernelError) as caught:
        compile_kernel(*arguments, **options)
    assert caught.value.rule == rule
