"""Four ranks: a maximum over all of them, and a sum that goes once around the ring."""

from typing import Any

import numpy as np

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import collectives as ncc
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.nki.simulator import PerRank

RANKS = 4
GROUPS = ((0, 1, 2, 3),)
X = np.random.default_rng(0).normal(size=(RANKS, 8, 16)).astype(np.float32)


@nki.jit
def ring(x: Any, rank: int) -> Any:
    shape, group = x.shape, ncc.ReplicaGroup(GROUPS)
    out = nl.ndarray((2, *shape), nl.float32, buffer=nl.shared_hbm)
    hops = [nl.ndarray(shape, nl.float32, buffer=nl.shared_hbm, name=f"hop{i}") for i in range(4)]
    top = nl.ndarray(shape, nl.float32, buffer=nl.shared_hbm, name="top")
    total, part = nl.ndarray(shape, nl.float32), nl.ndarray(shape, nl.float32)
    nisa.dma_copy(hops[0], x)
    ncc.all_reduce([hops[0]], [top], group, nl.maximum)
    nisa.dma_copy(out[0], top)
    nisa.dma_copy(total, x)
    for i in range(3):
        ncc.collective_permute_implicit([[hops[i]]], [[hops[i + 1]]], group)
        nisa.dma_copy(part, hops[i + 1])
        nisa.tensor_tensor(total, total, part, nl.add)
    nisa.dma_copy(out[1], total)
    return out


def run() -> Any:
    check(ring)
    return np.stack(simulate(ring, PerRank(X), PerRank(range(RANKS)), ranks=RANKS, target="trn2"))


def expected() -> Any:
    return np.stack([np.stack([X.max(0), X.astype(np.float64).sum(0)])] * RANKS)
