"""Double buffering by hand: tile i at the address of slot i % SLOTS, stored one step after it was loaded."""

from typing import Any

import numpy as np

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

SLOTS = 2
X = np.arange(4 * 64 * 16, dtype=np.float32).reshape(4, 64, 16)


@nki.jit
def doubled(x: Any) -> Any:
    steps, rows, columns = x.shape
    out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
    tiles = []
    for i in range(steps + 1):
        if i < steps:
            tiles.append(nl.ndarray((rows, columns), nl.float32, address=(64, i % SLOTS * 64)))
            nisa.dma_copy(tiles[i], x[i])
        if i > 0:
            nisa.tensor_scalar(tiles[i - 1], tiles[i - 1], nl.multiply, 2.0)
            nisa.dma_copy(out[i - 1], tiles[i - 1])
    return out


def run() -> Any:
    check(doubled)
    return simulate(doubled, X, target="trn2")


def expected() -> Any:
    return 2 * X
