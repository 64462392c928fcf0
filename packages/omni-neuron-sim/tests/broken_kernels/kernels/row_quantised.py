"""Rows as fp8 codes with their fp32 scale in the last four bytes: views of the same bytes as two dtypes."""

from typing import Any

import numpy as np

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

X = np.random.default_rng(0).integers(-8, 9, size=(32, 60)).astype(np.float32)
X[:, 0] = 8  # so that every code is a number of fp8


@nki.jit
def quantised(x: Any) -> Any:
    rows, columns = x.shape
    out = nl.ndarray((rows, columns), nl.float32, buffer=nl.shared_hbm)
    tile, largest = nl.ndarray((rows, columns), nl.float32), nl.ndarray((rows, 1), nl.float32)
    packed = nl.ndarray((rows, columns + 4), nl.float8_e4m3)
    nisa.dma_copy(tile, x)
    nisa.tensor_scalar_reduce(tile, tile, nl.multiply, 1.0, nl.maximum, largest)
    scale = packed[:, columns : columns + 4].view(nl.float32)
    nisa.tensor_copy(scale, largest)
    nisa.reciprocal(largest, largest)
    codes = packed[:, 0:columns]
    nisa.tensor_scalar(codes, tile, nl.multiply, largest, op1=nl.maximum, operand1=-240.0)
    nisa.tensor_scalar(tile, codes, nl.multiply, scale)
    nisa.dma_copy(out, tile.reshape((rows, 2, 30)).permute((0, 1, 2)))
    return out


def run() -> Any:
    check(quantised)
    return simulate(quantised, X, target="trn2", precise=True)


def expected() -> Any:
    return X
