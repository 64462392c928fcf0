"""A loop whose count and whose order of rows only the running machine knows."""

from typing import Any

import numpy as np

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

X = np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)
COUNT = np.array([[3]], np.int32)


@nki.jit
def sum_of_first(x: Any, count: Any) -> Any:
    columns = x.shape[1]
    out = nl.ndarray((1, columns), nl.float32, buffer=nl.shared_hbm)
    number = nl.ndarray((1, 1), nl.int32)
    total = nl.zeros((1, columns), nl.float32)
    row = nl.ndarray((1, columns), nl.float32)
    nisa.dma_copy(number, count)
    steps, current = nisa.register_alloc(), nisa.register_alloc(0)
    nisa.register_load(steps, number)

    def add(i: Any) -> None:
        nisa.register_move(current, i)
        nisa.dma_copy(row, x.select(0, current))
        nisa.tensor_tensor(total, total, row, nl.add)

    nl.fori_loop(0, steps, add)
    nisa.dma_copy(out, total)
    return out


def run() -> Any:
    check(sum_of_first)
    return simulate(sum_of_first, X, COUNT, target="trn2")


def expected() -> Any:
    return X[:3].sum(0, keepdims=True)
