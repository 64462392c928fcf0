"""Everything alive at once: four tiles that fill SBUF to the last byte, eight products that fill PSUM."""

from typing import Any

import numpy as np

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

TILES, BANKS = 4, 8
USABLE = 208 * 1024 // 4
X = np.random.default_rng(0).normal(size=(TILES, USABLE // 4)).astype(np.float32)


@nki.jit
def filled(x: Any) -> Any:
    columns = x.shape[1]
    out = nl.ndarray((BANKS, 2), nl.float32, buffer=nl.shared_hbm)
    tiles = [nl.ndarray((1, columns), nl.float32) for _ in range(x.shape[0])]
    for i in range(x.shape[0]):
        nisa.dma_copy(tiles[i], x[nl.ds(i, 1)])
    parts = [nl.ndarray((1, 2), nl.float32, buffer=nl.psum) for _ in range(BANKS)]
    for j in range(BANKS):
        nisa.nc_matmul(parts[j], tiles[0][:, nl.ds(j, 1)], tiles[1][:, 0:2])
    for j in range(BANKS):
        nisa.tensor_copy(tiles[0][:, 0:2], parts[j])
        nisa.dma_copy(out[nl.ds(j, 1)], tiles[0][:, 0:2])
    for i in range(x.shape[0]):
        nisa.dma_copy(x[nl.ds(i, 1)], tiles[i])
    return out


def run() -> Any:
    check(filled)
    return simulate(filled, X.copy(), target="trn2")


def expected() -> Any:
    return X[0, :BANKS, None] * X[1, None, :2]
