"""Kernels in the styles that are seen in the wild: allocators, views, byte tails, gathers, scans, shared
work."""

import math
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.nn import functional

from omni_neuron.sim import nki, simulate
from omni_neuron.sim.lint import lint
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

RNG = np.random.default_rng(15)


@dataclass
class BumpAllocator(nl.NKIObject):
    """Hands out SBUF by address; `slots` gives n tiles on k physical places."""

    top: int = 0
    marks: list = field(default_factory=list)

    def tile(self, shape, dtype, size):
        made = nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf, address=(0, self.top))
        self.top += size
        return made

    def slots(self, count, places, shape, dtype, size):
        start = self.top
        self.top += places * size
        return [
            nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf, address=(0, start + (i % places) * size))
            for i in range(count)
        ]


@nki.jit
def rmsnorm_quant(x, weight, eps):
    """RMSNorm, then fp8 rows with their fp32 scale in four more bytes."""
    tokens, hidden = x.shape
    out = nl.ndarray((tokens, hidden + 4), dtype=nl.float8_e4m3, buffer=nl.shared_hbm)
    sbm = BumpAllocator()
    tiles = math.ceil(tokens / nl.tile_size.pmax)
    gamma = sbm.tile((128, hidden), nl.float32, 4 * hidden)
    nisa.dma_copy(dst=gamma, src=weight.reshape((1, hidden)).broadcast(0, 128))
    loaded = sbm.slots(tiles, 2, (128, hidden), x.dtype, 2 * hidden)
    normed = sbm.slots(tiles, 2, (128, hidden), nl.float32, 4 * hidden)
    codes = sbm.slots(tiles, 2, (128, hidden + 4), nl.float8_e4m3, hidden + 4)
    for t in nl.affine_range(tiles):
        rows = min(128, tokens - t * 128)
        row = sbm.tile((128, 4), nl.float32, 16)
        nisa.dma_copy(dst=loaded[t][0:rows, :], src=x[nl.ds(t * 128, rows), :])
        nisa.activation_reduce(
            dst=normed[t][:rows],
            op=nl.square,
            data=loaded[t][:rows],
            reduce_op=nl.add,
            reduce_res=row[:rows, 0:1],
        )
        nisa.memset(dst=row[:, 1:2], value=eps)
        nisa.activation(
            dst=row[:rows, 0:1], op=nl.rsqrt, data=row[:rows, 0:1], scale=1.0 / hidden, bias=row[:rows, 1:2]
        )
        nisa.scalar_tensor_tensor(
            dst=normed[t][:rows], data=loaded[t][:rows], op0=nl.multiply, operand0=row[:rows, 0:1],
            op1=nl.multiply,
            operand1=gamma[:rows],
        )  # fmt: skip
        scratch = sbm.tile((128, hidden), nl.float32, 0)
        nisa.tensor_scalar_reduce(
            dst=scratch[:rows],
            data=normed[t][:rows],
            op0=nl.abs,
            operand0=None,
            reduce_op=nl.max,
            reduce_res=row[:rows, 2:3],
        )
        nisa.tensor_scalar(
            row[:rows, 2:3], row[:rows, 2:3], nl.multiply, 1.0 / 240, op1=nl.maximum, operand1=1e-6
        )
        nisa.reciprocal(row[:rows, 3:4], row[:rows, 2:3])
        nisa.tensor_scalar(codes[t][:rows, 0:hidden], normed[t][:rows], nl.multiply, row[:rows, 3:4])
        nisa.tensor_copy(codes[t][:rows, hidden : hidden + 4], row[:rows, 2:3].view(nl.float8_e4m3))
        nisa.dma_copy(dst=out[nl.ds(t * 128, rows)], src=codes[t][:rows])
    return out


def test_rows_are_quantised_with_their_scale_behind_them() -> None:
    x = RNG.standard_normal((300, 96)).astype(ml_dtypes.bfloat16)
    weight = RNG.uniform(0.5, 1.5, 96).astype(np.float32)
    found = rmsnorm_quant(x, weight, 1e-6)
    scale = found[:, 96:].copy().view(np.float32)
    values = found[:, :96].astype(np.float64) * scale
    wide = x.astype(np.float64)
    exact = wide / np.sqrt(np.square(wide).mean(-1, keepdims=True) + 1e-6) * weight
    np.testing.assert_allclose(scale[:, 0], np.abs(exact).max(-1) / 240, rtol=1e-5)
    assert np.linalg.norm(values - exact) / np.linalg.norm(exact) < 2**-4 / 3**0.5


@nki.jit
def gated_mlp(x, w_gate, w_up, w_down):
    """silu(x Wg) * (x Wu) Wd; the cores share the inner dimension and exchange partial sums."""
    tokens, hidden = x.shape
    inner = w_gate.shape[1]
    cores, me = nl.num_programs(0), nl.program_id(0)
    mine = inner // cores
    out = nl.ndarray((tokens, hidden), dtype=x.dtype, buffer=nl.shared_hbm)
    xt = [nl.ndarray((128, tokens), dtype=x.dtype) for _ in range(hidden // 128)]
    for h in range(hidden // 128):
        nisa.dma_transpose(dst=xt[h], src=x[:, nl.ds(128 * h, 128)])
    total = nl.ndarray((tokens, hidden), dtype=nl.float32, buffer=nl.psum)
    for i in range(mine // 128):
        at = nl.ds(me * mine + 128 * i, 128)
        products = []
        for weights in (w_gate, w_up):
            psum = nl.ndarray((128, tokens), dtype=nl.float32, buffer=nl.psum)
            for h in range(hidden // 128):
                w = nl.load(weights[nl.ds(128 * h, 128), at])
                nisa.nc_matmul(dst=psum, stationary=w, moving=xt[h], accumulate=(h != 0))
            products.append(psum)
        gate, act = nl.ndarray((128, tokens), nl.float32), nl.ndarray((128, tokens), x.dtype)
        nisa.activation(dst=gate, op=nl.silu, data=products[0])
        nisa.tensor_tensor(act, gate, products[1], op=nl.multiply)
        nisa.nc_matmul(total, act, nl.load(w_down[at, :]), accumulate=(i != 0))
    part, result = nl.ndarray((tokens, hidden), nl.float32), nl.ndarray((tokens, hidden), x.dtype)
    nisa.tensor_copy(part, total)
    if cores > 1:
        other = nl.ndarray((tokens, hidden), nl.float32)
        nisa.sendrecv(src=part, dst=other, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)
        nisa.tensor_tensor(result, part, other, nl.add)
    else:
        nisa.tensor_copy(result, part)
    if me == 0:
        nisa.dma_copy(out, result)
    return out


@pytest.mark.parametrize("lnc", [1, 2])
def test_the_inner_dimension_of_an_mlp_is_shared(lnc: int) -> None:
    torch.manual_seed(1)
    x = torch.randn(64, 256).bfloat16()
    gate, up = (torch.randn(256, 512).mul(256**-0.5).bfloat16() for _ in range(2))
    down = torch.randn(512, 256).mul(512**-0.5).bfloat16()
    exact = (functional.silu(x.double() @ gate.double()) * (x.double() @ up.double())) @ down.double()
    found = simulate(gated_mlp, x, gate, up, down, lnc=lnc).double()
    assert (found - exact).norm() / exact.norm() < 1.15 * 1.66e-3 * 2**0.5


@nki.jit
def embedding(table, tokens):
    """Rows of a table; ids out of range leave zeros."""
    count, width = tokens.shape[0], table.shape[1]
    out = nl.ndarray((count, width), table.dtype, buffer=nl.shared_hbm)
    for start in range(0, count, 128):
        rows = min(128, count - start)
        ids = nl.ndarray((128, 1), nl.int32)
        nisa.dma_copy(ids[0:rows], tokens[nl.ds(start, rows)].expand_dim(1))
        tile = nl.zeros((128, width), table.dtype)
        nisa.dma_copy(
            dst=tile[0:rows],
            src=table.ap(pattern=[[width, rows], [1, width]], vector_offset=ids[0:rows], indirect_dim=0),
            oob_mode=nisa.oob_mode.skip,
        )
        nisa.dma_copy(out[nl.ds(start, rows)], tile[0:rows])
    return out


def test_rows_of_a_table_are_looked_up() -> None:
    table = RNG.standard_normal((50, 24)).astype(np.float32)
    ids = RNG.integers(0, 60, 200).astype(np.int32)
    expected = np.where((ids < 50)[:, None], table[np.minimum(ids, 49)], 0)
    np.testing.assert_array_equal(embedding(table, ids), expected)


@nki.jit
def selective_scan(delta, u, a, b, c):
    """h_t = exp(delta_t a) h + delta_t u_t b_t, y_t = sum over states of c_t h_t; channels on partitions."""
    channels, steps = delta.shape
    states, piece = a.shape[1], 64
    out = nl.ndarray((channels, steps), delta.dtype, buffer=nl.shared_hbm)
    decay = nl.load(a)
    total = nl.zeros((channels, steps), nl.float32)
    for s in nl.static_range(states):
        carry = nl.zeros((channels, 1), nl.float32)
        for start in range(0, steps, piece):
            at = nl.ds(start, piece)
            d, x = nl.load(delta[:, at]), nl.load(u[:, at])
            rows = [nl.ndarray((channels, piece), nl.float32) for _ in range(2)]
            for row, source in zip(rows, (b, c), strict=True):
                nisa.dma_copy(row, source[s : s + 1, at].broadcast(0, channels))
            faded, drive, state = [nl.ndarray((channels, piece), nl.float32) for _ in range(3)]
            nisa.activation(faded, nl.exp, d, scale=decay[:, s : s + 1])
            nisa.tensor_tensor(drive, d, x, nl.multiply)
            nisa.tensor_tensor(drive, drive, rows[0], nl.multiply)
            nisa.tensor_tensor_scan(state, faded, drive, initial=carry, op0=nl.multiply, op1=nl.add)
            nisa.tensor_copy(carry, state[:, piece - 1])
            nisa.tensor_tensor(state, state, rows[1], nl.multiply)
            nisa.tensor_tensor(total[:, at], total[:, at], state, nl.add)
    nisa.dma_copy(out, total)
    return out


def test_a_scan_goes_on_over_pieces() -> None:
    channels, steps, states = 128, 192, 4
    delta = RNG.uniform(0.1, 1, (channels, steps)).astype(np.float32)
    u = RNG.standard_normal((channels, steps)).astype(np.float32)
    a = -RNG.uniform(0.1, 1, (channels, states)).astype(np.float32)
    b, c = RNG.standard_normal((2, states, steps)).astype(np.float32)
    h, expected = np.zeros((channels, states)), np.empty((channels, steps))
    for t in range(steps):
        h = np.exp(delta[:, t, None] * a) * h + (delta[:, t] * u[:, t])[:, None] * b[None, :, t]
        expected[:, t] = (h * c[None, :, t]).sum(-1)
    found = selective_scan(delta, u, a, b, c)
    assert np.linalg.norm(found - expected) / np.linalg.norm(expected) < 1e-6


@nki.jit
def average_pool(x, size):
    """x `[C, H, W]`, windows of size x size: a 5-D access pattern, reduced over its last two dimensions."""
    channels, height, width = x.shape
    rows, columns = height // size, width // size
    tile = nl.load(x)
    windows = tile.ap(
        [[height * width, channels], [size * width, rows], [size, columns], [width, size], [1, size]]
    )
    sums = nl.ndarray((channels, rows, columns), nl.float32)
    nisa.tensor_reduce(sums, nl.add, windows, axis=[3, 4])
    nisa.tensor_scalar(sums, sums, nl.multiply, 1.0 / (size * size))
    out = nl.ndarray((channels, rows, columns), x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, sums)
    return out


def test_windows_are_pooled() -> None:
    x = torch.randn(32, 12, 18)
    torch.testing.assert_close(average_pool(x, 3), functional.avg_pool2d(x[None], 3)[0], rtol=1e-5, atol=1e-6)


@nki.jit
def rotate_half(x, cos, sin):
    """RoPE on `[S, heads, d]`, the halves of d turned against each other."""
    _, heads, width = x.shape
    half = width // 2
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile, c, s = nl.load(x), nl.load(cos), nl.load(sin)
    wide = [t.expand_dim(1).broadcast(1, heads) for t in (c, s)]
    turned, straight, result = [nl.ndarray(x.shape, nl.float32) for _ in range(3)]
    nisa.tensor_scalar(turned[:, :, 0:half], tile[:, :, half:width], nl.multiply, -1.0)
    nisa.tensor_copy(turned[:, :, half:width], tile[:, :, 0:half])
    nisa.tensor_tensor(straight, tile, wide[0], nl.multiply)
    nisa.tensor_tensor(turned, turned, wide[1], nl.multiply)
    nisa.tensor_tensor(result, straight, turned, nl.add)
    nisa.dma_copy(out, result)
    return out


def test_halves_are_rotated() -> None:
    x, angle = torch.randn(100, 3, 64), torch.rand(100, 32).repeat(1, 2) * 6
    turned = torch.cat([-x[..., 32:], x[..., :32]], dim=-1)
    exact = x * angle.cos()[:, None] + turned * angle.sin()[:, None]
    torch.testing.assert_close(rotate_half(x, angle.cos(), angle.sin()), exact, rtol=1e-6, atol=1e-6)


@nki.jit
def append(cache, new, position):
    """Write rows of `new` into the cache from a position on that only the device knows."""
    rows, width = new.shape
    start = nl.ndarray((1, 1), nl.int32)
    nisa.dma_copy(start, position)

    def body(i):
        row = nl.ndarray((1, width), new.dtype)
        nisa.dma_copy(row, new.ap([[width, 1], [1, width]], scalar_offset=i))
        at = nl.ndarray((1, 1), nl.int32)
        nisa.register_store(at, i)
        nisa.tensor_tensor(at, at, start, nl.add)
        nisa.dma_copy(cache.select(0, at), row)

    nl.fori_loop(0, rows, body)


def test_a_cache_is_written_where_a_tensor_says() -> None:
    cache, new = np.zeros((20, 8), np.float32), RNG.standard_normal((5, 8)).astype(np.float32)
    append(cache, new, np.array([[7]], np.int32))
    np.testing.assert_array_equal(cache[7:12], new)
    assert not cache[:7].any()
    assert not cache[12:].any()


KERNELS = [rmsnorm_quant, gated_mlp, embedding, selective_scan, average_pool, rotate_half, append]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_none_of_it_needs_python_that_does_not_compile(kernel: Any) -> None:
    assert lint(kernel) == []
