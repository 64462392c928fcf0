"""A product of MX operands on trn3: quantised in the kernel, exact for small powers of two."""

from typing import Any

import numpy as np
import torch

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import check
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

TARGET = "trn3"
ROWS, M, N = 32, 8, 16
A = torch.randint(-2, 3, (ROWS, 4 * M), generator=torch.Generator().manual_seed(1)).bfloat16()
B = torch.randint(-2, 3, (ROWS, 4 * N), generator=torch.Generator().manual_seed(2)).bfloat16()


@nki.jit
def mx_product(a: Any, b: Any) -> Any:
    m, n = a.shape[1] // 4, b.shape[1] // 4
    out = nl.ndarray((m, n), nl.float32, buffer=nl.shared_hbm)
    left, right = nl.ndarray(a.shape, nl.bfloat16), nl.ndarray(b.shape, nl.bfloat16)
    nisa.dma_copy(left, a)
    nisa.dma_copy(right, b)
    packed_a = nl.ndarray((ROWS, m), nl.float8_e4m3fn_x4)
    packed_b = nl.ndarray((ROWS, n), nl.float8_e4m3fn_x4)
    scale_a, scale_b = nl.ndarray((ROWS, m), nl.uint8), nl.ndarray((ROWS, n), nl.uint8)
    nisa.quantize_mx(packed_a, left, scale_a)
    nisa.quantize_mx(packed_b, right, scale_b)
    sums = nl.ndarray((m, n), nl.float32, buffer=nl.psum)
    nisa.nc_matmul_mx(sums, packed_a, packed_b, scale_a, scale_b)
    result = nl.ndarray((m, n), nl.float32)
    nisa.activate2(result, nl.copy, sums, 1.0, 0.0, nl.multiply, nl.add)
    nisa.dma_copy(out, result, priority=1)
    return out


def run() -> Any:
    check(mx_product)
    return simulate(mx_product, A, B, target=TARGET).numpy()


def expected() -> Any:
    return np.einsum("kml,knl->mn", A.double().reshape(ROWS, M, 4), B.double().reshape(ROWS, N, 4))
