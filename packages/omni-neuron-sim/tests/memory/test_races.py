from typing import Any

import numpy as np
import pytest
import torch

from omni_neuron.sim import KernelError, simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn]


def both_write(x: Any, same: bool) -> Any:
    """Each core writes the whole result: the argument, or in the second core its double."""
    tile = nl.ndarray(x.shape, x.dtype)
    nisa.dma_copy(tile, x)
    if nl.program_id(0) == 1 and not same:
        nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, tile)
    return out


@pytest.mark.parametrize("dtype", DTYPES)
def test_cores_that_write_different_values_race(dtype: torch.dtype) -> None:
    x = torch.ones(4, 8).to(dtype)
    with pytest.raises(KernelError, match=r"core . writes what core . wrote") as caught:
        simulate(both_write, x, False, lnc=2, target="trn3")
    assert caught.value.rule == "race"


@pytest.mark.parametrize("dtype", DTYPES)
def test_cores_may_write_the_same(dtype: torch.dtype) -> None:
    x = torch.ones(4, 8).to(dtype)
    found = simulate(both_write, x, True, lnc=2, target="trn3")
    np.testing.assert_array_equal(found.float().numpy(), x.float().numpy())
