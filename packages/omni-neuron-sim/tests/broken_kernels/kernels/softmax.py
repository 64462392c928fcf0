"""Softmax of rows in two blocks of columns; the Scalar registers carry the sum from one to the other."""

from typing import Any

import numpy as np

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

X = np.random.default_rng(0).normal(size=(128, 256)).astype(np.float32)


@nki.jit
def softmax(x: Any) -> Any:
    rows, columns = x.shape
    half = columns // 2
    tile = nl.ndarray((rows, columns), nl.float32)
    top = nl.ndarray((rows, 1), nl.float32)
    powers = nl.ndarray((rows, columns), nl.float32)
    total = nl.ndarray((rows, 1), nl.float32)
    out = nl.ndarray((rows, columns), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(tile, x)
    nisa.tensor_reduce(top, nl.maximum, tile, axis=1, negate=True)
    keep, add = nisa.reduce_cmd.reduce, nl.add
    start = nisa.reduce_cmd.reset_reduce
    nisa.activation(powers[:, 0:half], nl.exp, tile[:, 0:half], top, 1.0, add, reduce_cmd=start)
    nisa.activation(powers[:, half:columns], nl.exp, tile[:, half:columns], top, 1.0, add, total, keep)
    nisa.reciprocal(total, total)
    nisa.tensor_scalar(powers, powers, nl.multiply, total)
    nisa.dma_copy(out, powers)
    return out


def run() -> Any:
    check(softmax)
    return simulate(softmax, X, target="trn2")


def expected() -> Any:
    powers = np.exp(X.astype(np.float64))
    return powers / powers.sum(1, keepdims=True)
