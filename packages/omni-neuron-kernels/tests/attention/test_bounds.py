"""What the kernels know before any score, beside float64: never too narrow, hardly too wide."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from omni_neuron.kernels.attention import hostile
from omni_neuron.kernels.attention.bounds import choose_paths
from omni_neuron.kernels.attention.mask import MASKED, valid_keys
from omni_neuron.kernels.attention.statistics import key_statistics, query_norms
from omni_neuron.kernels.attention.window import KEY_BLOCK, QUERY_BLOCK, above, below, width
from omni_neuron.kernels.interpreter import simulator
from omni_neuron.kernels.nki import nisa, nki, nl

SCALE = 128**-0.5
TOO_WIDE = 1.02


@nki.jit
def statistics_kernel(keys: Any, lengths: Any) -> Any:
    """Means `[D, N, blocks]` and extent `[1, N, 2, blocks]` of keys `[N, D, S]`; lengths `[N]` or None."""
    heads = keys.shape[0]
    counts = [None if lengths is None else valid_keys(lengths, h) for h in range(heads)]
    means, extent = key_statistics([keys[h] for h in range(heads)], counts)
    return [_stored(means), _stored(extent)]


@nki.jit
def paths_kernel(query: Any, keys: Any, scale: float) -> Any:
    """Norms `[128, N, tiles]`, shifts `[128, N, blocks]` and flags `[1, 1 + 2 N]` of queries `[N, D, Sq]`."""
    heads, count = query.shape[0], keys.shape[2]
    queries = [query[h] for h in range(heads)]
    means, extent = key_statistics([keys[h] for h in range(heads)], [None for _ in range(heads)])
    norms = query_norms(queries)
    each = [means[:, h : h + 1] for h in range(heads)]
    shifts, flags = choose_paths(queries, norms, each, [extent[:, h] for h in range(heads)], scale, count)
    return [_stored(norms), _stored(shifts), _stored(flags)]


def _stored(tile: Any) -> Any:
    out = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, tile)
    return out


def run(kernel: Any, *arguments: Any) -> list[Tensor]:
    return list(simulator().simulate(kernel, *arguments))


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(
    ("count", "lengths"),
    [
        (1, None),
        (300, None),
        (2 * KEY_BLOCK + 130, None),
        (300, (300, 0, 1)),
        (300, (128, 129, 257)),
        (KEY_BLOCK + 200, (KEY_BLOCK, KEY_BLOCK + 131, KEY_BLOCK - 1)),
    ],
)
def test_means_and_radii(count: int, lengths: tuple[int, ...] | None, dtype: torch.dtype) -> None:
    """Heads differ in offset and spread; later keys lie farther out, so that each one too many shows."""
    keys = normal(3, 96, count) * torch.tensor([1.0, 0.01, 300.0])[:, None, None]
    keys = (keys * torch.linspace(1.0, 9.0, count) + torch.tensor([2.0, 1.0, -50.0])[:, None, None]).to(dtype)
    counted = None if lengths is None else torch.tensor(lengths, dtype=torch.int32)
    means, extent = run(statistics_kernel, keys, counted)
    for h in range(3):
        end = count if lengths is None else lengths[h]
        for b, start in enumerate(range(0, count, KEY_BLOCK)):
            block = keys[h, :, start : min(end, start + KEY_BLOCK)].double()
            if block.shape[1] == 0 or start >= end:
                assert float(extent[0, h, 1, b]) == pytest.approx(MASKED)
                continue
            assert float(extent[0, h, 1, b]) == 0.0
            mean = means[:, h, b].double()
            largest = float(block.abs().max())
            torch.testing.assert_close(mean, block.mean(dim=1), atol=largest * 2.0**-13, rtol=0.0)
            radius = float((block - mean[:, None]).norm(dim=0).max())
            assert radius <= float(extent[0, h, 0, b]) <= TOO_WIDE * radius + 2e-15


@pytest.mark.parametrize("queries", [1, 130, 3 * QUERY_BLOCK + 200])
@pytest.mark.parametrize("nats", [4.0, 30.0, 60.0, 300.0, 5000.0])
def test_norms_shifts_and_flags(queries: int, nats: float) -> None:
    """One head of each family: whoever is inside has the largest score of every row in its window."""
    families = sorted(hostile.FAMILIES)
    count = 2 * QUERY_BLOCK
    made = []
    for i, name in enumerate(families):
        generator = torch.Generator().manual_seed(i)
        size = max(queries, count)
        query, keys = (torch.randn(1, 128, size, generator=generator) for _ in range(2))
        query, keys = hostile.FAMILIES[name](query, keys, nats)
        made.append((query[:, :, :queries], keys[:, :, :count]))
    query = torch.cat([q for q, _ in made]).bfloat16()
    keys = torch.cat([k for _, k in made]).bfloat16()
    norms, shifts, flags = run(paths_kernel, query, keys, SCALE)
    exact = query.double().norm(dim=1)
    found = norms.permute(1, 2, 0).flatten(1)[:, :queries].double()
    assert bool((found >= exact).all())
    assert bool((found <= TOO_WIDE * exact + 2e-15).all())
    inside = flags[0, 1 : 1 + len(families)].bool() | (flags[0, 0] > 0)
    assert flags[0, 0] + flags[0, 1:].sum() == (1 if flags[0, 0] else len(families))
    assert torch.equal(~inside, flags[0, 1 + len(families) :].bool())
    assert torch.equal(shifts, shifts[:1].expand_as(shifts))
    scores = SCALE * query.double().mT @ keys.double()
    mean = scores.mean(dim=2)
    spread = (keys.double() - keys.double().mean(dim=2, keepdim=True)).norm(dim=1).amax(dim=1)
    upper = mean + SCALE * exact * spread[:, None]
    for h in range(len(families)):
        slacks = []
        for b, start in enumerate(range(0, queries, QUERY_BLOCK)):
            rows = slice(start, start + QUERY_BLOCK)
            slacks.append(float(upper[h, rows].max() - mean[h, rows].min()))
            shift = -float(shifts[0, h, b])
            assert shift / math.log(2) == pytest.approx(round(shift / math.log(2)), rel=2.0**-22)
            if inside[h]:
                largest = scores[h, rows].amax(dim=1)
                assert float(largest.max()) <= shift + above(count) + 1
                assert float(largest.min()) >= shift - below(count) - 1
                # The middle of the bounds meets the middle of the window.
                middle = shift + 0.5 * (above(count) - below(count))
                centre = 0.5 * float(upper[h, rows].max() + mean[h, rows].min())
                assert abs(middle - centre) <= 0.36 + 0.02 * slacks[-1]
        if not 0.95 * width(count) <= max(slacks) <= width(count):
            assert bool(inside[h]) is (max(slacks) < width(count))


@pytest.mark.parametrize(("nats", "outside"), [(1.5e5, False), (3.5e5, True), (1e7, True)])
def test_scores_that_float32_does_not_hold_lie_outside(nats: float, outside: bool) -> None:
    """All keys are equal, so that nothing but rounding keeps the bounds apart: 2^-11 of the scores."""
    query, keys = torch.ones(1, 1, 5), torch.full((1, 1, 100), nats)
    _, _, flags = run(paths_kernel, query, keys, 1.0)
    assert flags.tolist() == ([[0, 0, 1]] if outside else [[1, 0, 0]])
