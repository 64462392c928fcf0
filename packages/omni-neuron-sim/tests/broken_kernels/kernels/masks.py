"""A causal mask, a range of keys, a predicate and a broadcast row, with reductions over both axes."""

from typing import Any

import numpy as np

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

N = 64
X = np.random.default_rng(0).normal(size=(N, N)).astype(np.float32)


@nki.jit
def masked(x: Any) -> Any:
    out = nl.ndarray((3, 1, N), nl.float32, buffer=nl.shared_hbm)
    tile, causal = nl.ndarray((N, N), nl.float32), nl.ndarray((N, N), nl.float32)
    low, high = nl.zeros((N, 1), nl.float32), nl.ndarray((N, 1), nl.float32)
    nisa.dma_copy(tile, x)
    nisa.affine_select(causal, [[-1, N]], 1, tile, 0.0, cmp_op=nl.greater_equal)
    row = nl.ndarray((1, N), nl.float32)
    nisa.tensor_partition_reduce(row, nl.add, causal)
    nisa.dma_copy(out[0], row)
    nisa.iota(high, [[1, 1]], offset=1, channel_multiplier=1)
    best = nl.ndarray((N, 1), nl.float32)
    nisa.range_select(causal, tile, nl.greater_equal, nl.less, low, high, reduce_res=best)
    nisa.dma_copy(out[1], best)
    odd = nl.ndarray((N, N), nl.uint8)
    nisa.memset(odd, 0)
    nisa.memset(odd[32:64], 1)
    nisa.tensor_copy_predicated(tile, causal, odd)
    nisa.nc_stream_shuffle(causal[0:32], tile, [31] * 32)
    nisa.dma_copy(out[2], causal[0:1])
    return out


def run() -> Any:
    check(masked)
    return simulate(masked, X, target="trn2").reshape(3, N)


def expected() -> Any:
    lower = np.tril(np.ones((N, N), bool))
    best = np.where(lower, X, -np.inf).max(1)
    return np.stack([np.where(lower, X, 0).astype(np.float64).sum(0), best, X[31]])
