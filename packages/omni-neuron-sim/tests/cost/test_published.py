"""The model against what is reported for two attention kernels on trn2, with the tilings that are published.

Both work on one head of width 128 in bf16 and are software-pipelined in program order.
"""

from typing import Any

import pytest
import torch

from omni_neuron.sim import Profile, nki, profile
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl

WIDTH = 128
BF16, F32, F16 = nl.bfloat16, nl.float32, nl.float16


@nki.jit
def constant_bound(q_t: Any, k_t: Any, v: Any, bound: Any, scale: float) -> Any:
    """A bound per row instead of a maximum: keys on partitions, [V | 1] gives the sums, no transpose.

    q_t, k_t `[d, S]`, v `[S, d]`, bound `[1, S]`. 512 queries at a time, keys in blocks of 16 tiles, the
    second product 8 tiles behind the first.
    """
    queries, keys, behind = q_t.shape[1], k_t.shape[1], 8
    out = nl.ndarray((queries, WIDTH), BF16, buffer=nl.shared_hbm)
    extended = [nl.ndarray((128, WIDTH + 1), BF16) for _ in range(behind + 1)]
    for buffer in extended:
        nisa.memset(buffer[:, WIDTH : WIDTH + 1], 1.0)
    for q0 in range(0, queries, 512):
        query, limit = nl.ndarray((WIDTH, 512), BF16), nl.ndarray((128, 512), BF16)
        nisa.dma_copy(query, q_t[:, nl.ds(q0, 512)])
        nisa.activation(query, nl.copy, query, scale=scale)
        nisa.dma_copy(limit, bound.ap([[0, 128], [1, 512]], offset=q0))
        sums = [nl.zeros((128, WIDTH + 1), F32) for _ in range(4)]
        ready: list[Any] = []
        for t in range(keys // 128 + behind):
            if t % 16 == 0 and t < keys // 128:
                key, value = nl.ndarray((WIDTH, 2048), BF16), nl.ndarray((128, 16, WIDTH), BF16)
                nisa.dma_copy(key, k_t[:, nl.ds(128 * t, 2048)])
                rows = v[nl.ds(128 * t, 2048)].reshape((16, 128, WIDTH))
                nisa.dma_copy(value, rows.permute((1, 0, 2)))
            if t < keys // 128:
                own = extended[t % (behind + 1)]
                nisa.tensor_copy(own[:, 0:WIDTH], value[:, t % 16], engine=nisa.vector_engine)
                scores = nl.ndarray((128, 512), F32, buffer=nl.psum)
                shifted, powers = nl.ndarray((128, 512), F16), nl.ndarray((128, 512), BF16)
                nisa.nc_matmul(scores, key[:, nl.ds(128 * (t % 16), 128)], query)
                nisa.tensor_tensor(shifted, scores, limit, nl.subtract)
                nisa.activation(powers, nl.exp, shifted)
                ready.append((powers, own))
            if t >= behind:
                done = t - behind
                if done % 16 == 0:
                    parts = [nl.ndarray((128, WIDTH + 1), F32, buffer=nl.psum) for _ in range(4)]
                powers, own = ready[done]
                for i in range(4):
                    part = powers[:, nl.ds(128 * i, 128)]
                    nisa.nc_matmul(parts[i], part, own, accumulate=done % 16 > 0)
                    if done % 16 == 15:
                        nisa.tensor_tensor(sums[i], sums[i], parts[i], nl.add)
        for i in range(4):
            inverse, result = nl.ndarray((128, 1), F32), nl.ndarray((128, WIDTH), BF16)
            nisa.reciprocal(inverse, sums[i][:, WIDTH : WIDTH + 1])
            nisa.tensor_scalar(result, sums[i][:, 0:WIDTH], nl.multiply, inverse)
            nisa.dma_copy(out[nl.ds(q0 + 128 * i, 128)], result)
    return out


@nki.jit
def running_maximum(q_t: Any, k_t: Any, v: Any, scale: float) -> Any:
    """One step of the older ring: queries on partitions, probabilities transposed by DMA, o through HBM.

    128 queries at a time, keys in tiles of 512; scores are one group of queries ahead of the second product.
    """
    queries, keys = q_t.shape[1], k_t.shape[1]
    out = nl.ndarray((queries, WIDTH), BF16, buffer=nl.shared_hbm)
    key, values = nl.ndarray((WIDTH, keys), BF16), []
    nisa.dma_copy(key, k_t)
    for t in range(keys // 128):
        values.append(nl.ndarray((128, WIDTH), BF16))
        nisa.dma_copy(values[t], v[nl.ds(128 * t, 128)])
    groups: list[Any] = []
    for g in range(queries // 128 + 1):
        if g < queries // 128:
            groups.append(_scores(q_t, key, g, keys, scale))
        if g:
            flipped, top_sum = groups[g - 1]
            gathered = nl.ndarray((128, WIDTH), F32)
            for large in range(keys // 2048):
                part = nl.ndarray((128, WIDTH), F32, buffer=nl.psum)
                for i in range(16):
                    t = 16 * large + i
                    nisa.nc_matmul(part, flipped[t // 4][:, t % 4], values[t], accumulate=i > 0)
                if large:
                    nisa.tensor_tensor(gathered, gathered, part, nl.add)
                else:
                    nisa.tensor_copy(gathered, part, engine=nisa.vector_engine)
            inverse, result = nl.ndarray((128, 1), F32), nl.ndarray((128, WIDTH), BF16)
            nisa.reciprocal(inverse, top_sum)
            nisa.tensor_scalar(result, gathered, nl.multiply, inverse)
            nisa.dma_copy(out[nl.ds(128 * (g - 1), 128)], result)
    return out


def _scores(q_t: Any, key: Any, g: int, keys: int, scale: float) -> Any:
    query = nl.ndarray((WIDTH, 128), BF16)
    nisa.dma_copy(query, q_t[:, nl.ds(128 * g, 128)])
    tiles = keys // 512
    tops, sums = nl.ndarray((128, tiles), F32), nl.ndarray((128, tiles), F32)
    scaled, flipped = [], []
    for j in range(tiles):
        psum = nl.ndarray((128, 512), F32, buffer=nl.psum)
        nisa.nc_matmul(psum, query, key[:, nl.ds(512 * j, 512)])
        scaled.append(nl.ndarray((128, 512), F32))
        nisa.tensor_scalar_reduce(scaled[j], psum, nl.multiply, scale, nl.maximum, tops[:, j : j + 1])
    top, total = nl.ndarray((128, 1), F32), nl.ndarray((128, 1), F32)
    nisa.tensor_reduce(top, nl.maximum, tops, 1, negate=True)
    for j in range(tiles):
        powers, turned = nl.ndarray((128, 512), BF16), nl.ndarray((128, 1, 4, 128), BF16)
        nisa.activation_reduce(powers, nl.exp, scaled[j], nl.add, sums[:, j : j + 1], bias=top)
        nisa.dma_transpose(turned, powers.reshape((128, 1, 4, 128)))
        flipped.append(turned.reshape((128, 4, 128)))
    nisa.tensor_reduce(total, nl.add, sums, 1)
    return flipped, total


def inputs(queries: int, keys: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    q, k, v = torch.randn(queries, WIDTH), torch.randn(keys, WIDTH), torch.randn(keys, WIDTH)
    return q.bfloat16(), k.bfloat16(), v.bfloat16()


def error(found: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> float:
    exact = (scale * q.double() @ k.double().T).softmax(-1) @ v.double()
    return float((found.double() - exact).norm() / exact.norm())


def steady(short: Profile, long: Profile) -> float:
    """PE utilisation of what the longer run does more, so that start and end do not count."""
    rate = 2 * 128 * 128 * 2.4e9
    return (long.useful_flops - short.useful_flops) / rate / (long.makespan_s - short.makespan_s)


def test_a_constant_bound_uses_the_pe_at_about_75_per_cent() -> None:
    scale = WIDTH**-0.5 / 4
    found = []
    for keys in (4096, 12288):
        q, k, v = inputs(512, keys)
        bound = (scale * q.double().norm(dim=1) * k.double().norm(dim=1).max()).bfloat16()[None]
        run = profile(constant_bound, q.T.contiguous(), k.T.contiguous(), v, bound, scale, target="trn2",
                      useful_flops=4 * 512 * keys * WIDTH)  # fmt: skip
        assert error(run.results[0], q, k, v, scale) < 6e-3
        assert run.bottleneck == "vector"
        found.append(run)
    assert steady(*found) == pytest.approx(0.75, abs=0.05)


def test_a_running_maximum_uses_the_pe_at_about_44_per_cent() -> None:
    found = []
    for queries in (512, 1024):
        q, k, v = inputs(queries, 4096)
        run = profile(running_maximum, q.T.contiguous(), k.T.contiguous(), v, WIDTH**-0.5, target="trn2",
                      useful_flops=4 * queries * 4096 * WIDTH)  # fmt: skip
        assert error(run.results[0], q, k, v, WIDTH**-0.5) < 4e-3
        assert run.bottleneck == "dma"
        found.append(run)
    assert steady(*found) == pytest.approx(0.44, abs=0.05)
