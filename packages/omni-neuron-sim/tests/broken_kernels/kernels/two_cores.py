"""Two cores of a logical core: each stages its half in shared HBM, adds the other's, and both swap tiles."""

from typing import Any

import numpy as np

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

CORES = 2
X = np.arange(2 * 64 * 8, dtype=np.float32).reshape(2, 64, 8)


@nki.jit
def swapped_sums(x: Any) -> Any:
    me = nl.program_id(0)
    other = 1 - me
    out = nl.ndarray((2, 64, 8), nl.float32, buffer=nl.shared_hbm)
    staged = nl.ndarray((2, 64, 8), nl.float32, buffer=nl.shared_hbm, name="staged")
    mine, theirs = nl.ndarray((64, 8), nl.float32), nl.ndarray((64, 8), nl.float32)
    nisa.dma_copy(mine, x[me])
    nisa.dma_copy(staged[me], mine)
    nisa.core_barrier(staged, (0, 1))
    nisa.dma_copy(theirs, staged[other])
    nisa.core_barrier(staged, cores=(0, 1))
    nisa.tensor_scalar(mine, mine, nl.multiply, 10.0)
    nisa.dma_copy(staged[me], mine)
    nisa.tensor_tensor(mine, mine, theirs, nl.add)
    nisa.sendrecv(mine, theirs, send_to_rank=other, recv_from_rank=other, pipe_id=0)
    nisa.dma_copy(out[me], theirs)
    return out


def run() -> Any:
    check(swapped_sums)
    return simulate(swapped_sums, X, lnc=CORES, target="trn2")


def expected() -> Any:
    return np.stack([10 * X[1] + X[0], 10 * X[0] + X[1]])
