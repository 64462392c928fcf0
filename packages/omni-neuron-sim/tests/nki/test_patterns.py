"""Well-known kernels from end to end, in bf16 and fp32, beside float64."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

BF16_ROUNDING = 1.66e-3  # relative L2 of one rounding to bf16


def relative(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.double() - exact.double()).norm() / exact.double().norm())


@nki.jit
def tiled_matmul(lhs_t: Any, rhs: Any) -> Any:
    """out[M, N] = lhs_t[K, M].T @ rhs[K, N], with ragged edges."""
    (k, m), n = lhs_t.shape, rhs.shape[1]
    out = nl.ndarray((m, n), lhs_t.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(math.ceil(m / 128)):
        rows = min(128, m - 128 * i)
        for j in nl.affine_range(math.ceil(n / 512)):
            columns = min(512, n - 512 * j)
            psum = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
            for c in nl.affine_range(math.ceil(k / 128)):
                depth = min(128, k - 128 * c)
                a, b = nl.ndarray((128, 128), lhs_t.dtype), nl.ndarray((128, 512), rhs.dtype)
                nisa.dma_copy(a[0:depth, 0:rows], lhs_t[nl.ds(128 * c, depth), nl.ds(128 * i, rows)])
                nisa.dma_copy(b[0:depth, 0:columns], rhs[nl.ds(128 * c, depth), nl.ds(512 * j, columns)])
                nisa.nc_matmul(psum[0:rows, 0:columns], a[0:depth, 0:rows], b[0:depth, 0:columns])
            tile = nl.ndarray((128, 512), out.dtype)
            nisa.tensor_copy(tile[0:rows, 0:columns], psum[0:rows, 0:columns])
            nisa.dma_copy(out[nl.ds(128 * i, rows), nl.ds(512 * j, columns)], tile[0:rows, 0:columns])
    return out


@pytest.mark.parametrize(("m", "k", "n"), [(256, 256, 512), (200, 300, 700), (8, 128, 100)])
def test_tiled_matmul(m: int, k: int, n: int) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(k, m).bfloat16(), torch.randn(k, n).bfloat16()
    assert relative(tiled_matmul(a, b), a.double().T @ b.double()) <= 1.15 * BF16_ROUNDING


@nki.jit
def layernorm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    tokens, hidden = x.shape
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    scale, shift = nl.ndarray((128, hidden), nl.float32), nl.ndarray((128, hidden), nl.float32)
    nisa.dma_copy(scale, weight.ap([[0, 128], [1, hidden]]))
    nisa.dma_copy(shift, bias.ap([[0, 128], [1, hidden]]))
    pieces = math.ceil(hidden / nl.tile_size.bn_stats_fmax)
    for t in range(math.ceil(tokens / 128)):
        rows = min(128, tokens - 128 * t)
        tile = nl.ndarray((128, hidden), x.dtype)
        nisa.dma_copy(tile[0:rows], x[nl.ds(128 * t, rows)])
        statistics, moments = nl.ndarray((128, 6 * pieces), nl.float32), nl.ndarray((128, 2), nl.float32)
        for p in range(pieces):
            size = min(512, hidden - 512 * p)
            nisa.bn_stats(statistics[0:rows, nl.ds(6 * p, 6)], tile[0:rows, nl.ds(512 * p, size)])
        nisa.bn_aggr(moments[0:rows], statistics[0:rows])
        epsilon, factor = nl.ndarray((128, 1), nl.float32), nl.ndarray((128, 1), nl.float32)
        nisa.memset(epsilon, eps)
        nisa.activation(factor[0:rows], nl.rsqrt, moments[0:rows, 1:2], bias=epsilon[0:rows])
        normed = nl.ndarray((128, hidden), nl.float32)
        nisa.tensor_scalar(
            normed[0:rows],
            tile[0:rows],
            nl.subtract,
            moments[0:rows, 0:1],
            op1=nl.multiply,
            operand1=factor[0:rows],
        )
        nisa.tensor_tensor(normed[0:rows], normed[0:rows], scale[0:rows], nl.multiply)
        nisa.tensor_tensor(tile[0:rows], normed[0:rows], shift[0:rows], nl.add)
        nisa.dma_copy(out[nl.ds(128 * t, rows)], tile[0:rows])
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layernorm(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    x = (torch.randn(200, 1100) * 3 + 10).to(dtype)
    weight, bias = torch.randn(1100), torch.randn(1100)
    exact = functional.layer_norm(x.double(), (1100,), weight.double(), bias.double(), 1e-5)
    bar = 1.15 * BF16_ROUNDING if dtype is torch.bfloat16 else 1e-6
    assert relative(layernorm(x, weight, bias, 1e-5), exact) <= bar


@nki.jit
def softmax(x: Any) -> Any:
    rows, columns = x.shape
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for t in range(rows // 128):
        tile = nl.ndarray((128, columns), x.dtype)
        nisa.dma_copy(tile, x[t * 128 : (t + 1) * 128])
        top, total, inverse = (nl.ndarray((128, 1), nl.float32) for _ in range(3))
        nisa.tensor_reduce(top, nl.max, tile, axis=1, negate=True)
        powers = nl.ndarray((128, columns), nl.float32)
        nisa.activation_reduce(powers, nl.exp, tile, nl.add, total, bias=top)
        nisa.reciprocal(inverse, total)
        nisa.tensor_scalar(tile, powers, nl.multiply, inverse)
        nisa.dma_copy(out[t * 128 : (t + 1) * 128], tile)
    return out


def test_softmax() -> None:
    torch.manual_seed(2)
    x = torch.randn(256, 700) * 5
    assert relative(softmax(x), x.double().softmax(-1)) <= 1e-6


@nki.jit
def transpose(x: Any) -> Any:
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), x.dtype, buffer=nl.shared_hbm)
    for i in range(rows // 128):
        for j in range(columns // 128):
            tile, psum = nl.ndarray((128, 128), x.dtype), nl.ndarray((128, 128), x.dtype, buffer=nl.psum)
            nisa.dma_copy(tile, x[nl.ds(128 * i, 128), nl.ds(128 * j, 128)])
            nisa.nc_transpose(psum, tile)
            nisa.tensor_copy(tile, psum)
            nisa.dma_copy(out[nl.ds(128 * j, 128), nl.ds(128 * i, 128)], tile)
    return out


def test_transpose_is_exact() -> None:
    x = torch.randn(256, 384).bfloat16()
    assert torch.equal(transpose(x), x.T)


@nki.jit
def flash_attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """q, k `[S, d]`, v `[S, d]` -> `[S, d]`, with a running maximum; S a multiple of 128."""
    tokens, width = q.shape
    scale = width**-0.5
    out = nl.ndarray(q.shape, q.dtype, buffer=nl.shared_hbm)
    keys, values = nl.ndarray((width, tokens), k.dtype), []
    for t in range(tokens // 128):
        tile, psum = nl.ndarray((128, width), k.dtype), nl.ndarray((width, 128), k.dtype, buffer=nl.psum)
        nisa.dma_copy(tile, k[nl.ds(128 * t, 128)])
        nisa.nc_transpose(psum, tile)
        nisa.tensor_copy(keys[:, nl.ds(128 * t, 128)], psum)
        values.append(nl.ndarray((128, width), v.dtype))
        nisa.dma_copy(values[t], v[nl.ds(128 * t, 128)])
    for i in range(tokens // 128):
        query, turned = nl.ndarray((128, width), q.dtype), nl.ndarray((width, 128), q.dtype)
        nisa.dma_copy(query, q[nl.ds(128 * i, 128)])
        psum = nl.ndarray((width, 128), q.dtype, buffer=nl.psum)
        nisa.nc_transpose(psum, query)
        nisa.tensor_copy(turned, psum)
        total, top = nl.zeros((128, 1), nl.float32), nl.full((128, 1), -1e30, nl.float32)
        gathered = nl.zeros((128, width), nl.float32)
        for j in range(i + 1 if causal else tokens // 128):
            scores, scaled = (
                nl.ndarray((128, 128), nl.float32, buffer=nl.psum),
                nl.ndarray((128, 128), nl.float32),
            )
            nisa.nc_matmul(scores, turned, keys[:, nl.ds(128 * j, 128)])
            nisa.activation(scaled, nl.copy, scores, scale=scale)
            if causal and i == j:
                nisa.affine_select(scaled, [[-1, 128]], 1, scaled, -1e30, nl.greater_equal)
            peak, new, fade, row = (nl.ndarray((128, 1), nl.float32) for _ in range(4))
            nisa.tensor_reduce(peak, nl.maximum, scaled, 1)
            nisa.tensor_tensor(new, peak, top, nl.maximum)
            nisa.activation(fade, nl.exp, new, bias=top, scale=-1.0)
            nisa.tensor_copy(top, new)
            nisa.tensor_scalar(new, new, nl.multiply, -1.0)
            powers = nl.ndarray((128, 128), nl.bfloat16)
            nisa.activation_reduce(powers, nl.exp, scaled, nl.add, row, bias=new)
            nisa.scalar_tensor_tensor(total, total, nl.multiply, fade, nl.add, row)
            across, flipped = (
                nl.ndarray((128, 128), nl.bfloat16, buffer=nl.psum),
                nl.ndarray((128, 128), nl.bfloat16),
            )
            nisa.nc_transpose(across, powers)
            nisa.tensor_copy(flipped, across)
            part = nl.ndarray((128, width), nl.float32, buffer=nl.psum)
            nisa.nc_matmul(part, flipped, values[j])
            nisa.scalar_tensor_tensor(gathered, gathered, nl.multiply, fade, nl.add, part)
        inverse, result = nl.ndarray((128, 1), nl.float32), nl.ndarray((128, width), q.dtype)
        nisa.reciprocal(inverse, total)
        nisa.tensor_scalar(result, gathered, nl.multiply, inverse)
        nisa.dma_copy(out[nl.ds(128 * i, 128)], result)
    return out


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("tokens", "width"), [(256, 64), (384, 128)])
def test_flash_attention(tokens: int, width: int, causal: bool) -> None:
    torch.manual_seed(3)
    q, k, v = (torch.randn(tokens, width).bfloat16() for _ in range(3))
    exact = functional.scaled_dot_product_attention(*(t.double()[None] for t in (q, k, v)), is_causal=causal)[
        0
    ]
    # rounded: the probabilities and the output
    assert relative(flash_attention(q, k, v, causal), exact) <= 1.15 * BF16_ROUNDING * math.sqrt(2)


def test_both_cores_share_the_work() -> None:
    def kernel(x: Any) -> Any:
        rows = x.shape[0] // nl.num_programs(0)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        half = nl.ds(rows * nl.program_id(0), rows)
        tile = nl.load(x[half])
        nisa.activation(tile, nl.gelu, tile)
        nisa.dma_copy(out[half], tile)
        return out

    x = np.random.default_rng(4).standard_normal((256, 32)).astype(np.float32)
    np.testing.assert_array_equal(simulate(kernel, x, lnc=2)[:128], simulate(kernel, x[:128]))
    np.testing.assert_array_equal(simulate(kernel, x, lnc=2)[128:], simulate(kernel, x[128:]))
