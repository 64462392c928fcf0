"""Three ways to transpose: on the PE into PSUM, in blocks of 32 on Vector, by DMA on the way to SBUF."""

from typing import Any

import numpy as np
import torch

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

STRIP = 16
X = torch.arange(128 * 64).reshape(128, 64).bfloat16()


@nki.jit
def transposed(x: Any) -> Any:
    rows, columns = x.shape
    out = nl.ndarray((3, columns, 32), nl.bfloat16, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, columns), nl.bfloat16)
    nisa.dma_copy(tile, x)
    turned = nl.ndarray((columns, rows), nl.bfloat16, buffer=nl.psum)
    nisa.nc_transpose(turned, tile)
    flipped = nl.ndarray((columns, 32), nl.bfloat16)
    nisa.tensor_copy(flipped, turned[:, 0:32])
    nisa.dma_copy(out[0], flipped)
    for block in range(columns // 32):
        piece = flipped[nl.ds(32 * block, 32)]
        nisa.nc_transpose(piece, tile[0:32, nl.ds(32 * block, 32)], engine=nisa.vector_engine)
    nisa.dma_copy(out[1], flipped)
    for i in range(32 // STRIP):
        part = flipped[:, nl.ds(STRIP * i, STRIP)]
        nisa.dma_transpose(part, x[nl.ds(STRIP * i, STRIP)], axes=(1, 0), dge_mode=nisa.dge_mode.hwdge)
    nisa.dma_copy(out[2], flipped)
    return out


def run() -> Any:
    check(transposed)
    return simulate(transposed, X, target="trn2").float().numpy()


def expected() -> Any:
    return np.stack([X[:32].float().numpy().T] * 3)
