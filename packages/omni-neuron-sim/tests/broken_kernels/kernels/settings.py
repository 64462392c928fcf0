"""A kernel with a class of settings and a helper, as larger kernels have: all of it must compile."""

from typing import Any

import numpy as np

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

X = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)


class Block(nl.NKIObject):
    def __init__(self, rows: int, factor: float) -> None:
        self.rows = rows
        self.factor = factor

    def count(self, rows: int) -> int:
        return rows // self.rows


def scale(dst: Any, src: Any, factor: float, engine: Any = None) -> None:
    assert dst.shape == src.shape
    nisa.tensor_scalar(dst, src, nl.multiply, factor)


@nki.jit
def scaled(x: Any, block: Block) -> Any:
    out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
    for i in range(block.count(x.shape[0])):
        with nl.no_reorder():
            tile = nl.ndarray((block.rows, x.shape[1]), nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(tile, x[nl.ds(i * block.rows, block.rows)])
            scale(tile, tile, block.factor)
            nisa.dma_copy(out[nl.ds(i * block.rows, block.rows)], tile)
    return out


def run() -> Any:
    check(scaled)
    return simulate(scaled, X, Block(32, 2.0), target="trn2")


def expected() -> Any:
    return 2 * X
