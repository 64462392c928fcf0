"""a_t.T @ b in bf16: two tiles of the contraction are added up in the second of two PSUM banks."""

from typing import Any

import numpy as np
import torch

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

ROWS, COLUMNS, DEPTH = 64, 512, 256
A_T = torch.randn(DEPTH, ROWS, generator=torch.Generator().manual_seed(1)).bfloat16()
B = torch.randn(DEPTH, COLUMNS, generator=torch.Generator().manual_seed(2)).bfloat16()


@nki.jit
def gemm(a_t: Any, b: Any) -> Any:
    rows, columns = a_t.shape[1], b.shape[1]
    out = nl.ndarray((rows, columns), nl.float32, buffer=nl.shared_hbm)
    banks = nl.ndarray((rows, 2048), nl.float32, buffer=nl.psum, address=(0, 0))
    sums = banks[:, nl.ds(512, columns)]
    for k in range(a_t.shape[0] // 128):
        left = nl.ndarray((128, rows), nl.bfloat16)
        right = nl.ndarray((128, columns), nl.bfloat16)
        nisa.dma_copy(left, a_t[nl.ds(128 * k, 128)])
        nisa.dma_copy(right, b[nl.ds(128 * k, 128)])
        nisa.nc_matmul(sums, left, right, accumulate=k > 0)
    result = nl.ndarray((rows, columns), nl.float32)
    nisa.tensor_copy(result, sums)
    nisa.dma_copy(out, result)
    return out


def run() -> Any:
    check(gemm)
    return simulate(gemm, A_T, B, target="trn2").numpy()


def expected() -> Any:
    return np.asarray(A_T.double().T @ B.double())
