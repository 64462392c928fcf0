"""Rows of a table by index: some out of range are skipped, and the rows found are scattered again."""

from typing import Any

import numpy as np

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

TABLE = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
PICKED = np.array([[3], [63], [99], [0]], np.int32)
PLACES = np.array([[1], [0], [2], [3]], np.int32)


@nki.jit
def gathered(table: Any, picked: Any, places: Any) -> Any:
    rows, columns = picked.shape[0], table.shape[1]
    out = nl.ndarray((rows, columns), nl.float32, buffer=nl.shared_hbm)
    index = nl.ndarray((rows, 1), nl.int32)
    target = nl.ndarray((rows, 1), nl.int32)
    tile = nl.zeros((rows, columns), nl.float32)
    nisa.dma_copy(index, picked)
    nisa.dma_copy(target, places)
    found = table.ap([[columns, rows], [1, columns]], vector_offset=index)
    nisa.dma_copy(tile, found, oob_mode=nisa.oob_mode.skip)
    scattered = out.vector_select(0, target)
    nisa.dma_copy(scattered, tile, dge_mode=nisa.dge_mode.swdge)
    return out


def run() -> Any:
    check(gathered)
    return simulate(gathered, TABLE, PICKED, PLACES, target="trn2")


def expected() -> Any:
    return np.stack([TABLE[63], TABLE[3], np.zeros(8), TABLE[0]])
