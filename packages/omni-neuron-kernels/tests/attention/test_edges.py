"""Inputs at the edge of what formats hold: nothing that is not to count has an influence, no row is lost."""

import math

import pytest
import torch
from torch import Tensor

from omni_neuron.kernels.attention import state
from omni_neuron.kernels.attention.spec import FLASH_ATTENTION, RING_ATTENTION, attention_oracle
from omni_neuron.kernels.attention.twin import attention_twin
from omni_neuron.kernels.attention.window import VALUE_NATS, width
from omni_neuron.kernels.interpreter import interpret
from omni_neuron.kernels.proof import relative_l2

BF16, FP32 = torch.bfloat16, torch.float32
BAR = FLASH_ATTENTION.twin_bar(BF16)
Inputs = tuple[Tensor, Tensor, Tensor]


def normal(heads: int, dim: int, queries: int, keys: int) -> Inputs:
    generator = torch.Generator().manual_seed(0)
    shapes = (heads, dim, queries), (heads, dim, keys), (heads, keys, dim)
    query, key, value = (torch.randn(shape, generator=generator) for shape in shapes)
    return query, key, value


def flash(query: Tensor, keys: Tensor, values: Tensor, lengths: Tensor | None, scale: float) -> Tensor:
    return interpret(FLASH_ATTENTION, [(query, keys, values, lengths, scale)])[0][0]


def ring(
    query: Tensor, keys: Tensor, values: Tensor, lengths: tuple[int, ...], scale: float, lnc: int = 1
) -> Tensor:
    """As many ranks as there are lengths, in descending order."""
    ranks = len(lengths)
    order = (tuple(range(ranks))[::-1],)
    counts = torch.tensor(lengths, dtype=torch.int32)
    shards = zip(query.chunk(ranks, 2), keys.chunk(ranks, 2), values.chunk(ranks, 1), strict=True)
    results = interpret(RING_ATTENTION, [(*shard, counts, scale, order) for shard in shards], lnc)
    return torch.cat([result[0] for result in results], dim=2)


def lengths_of(*counts: int) -> Tensor:
    return torch.tensor(counts, dtype=torch.int32)


@pytest.mark.parametrize("loud", [1.0, 20.0])  # inside the window and outside
@pytest.mark.parametrize("garbage", [1e4, 1e19, 1e30, -1e34])
def test_what_stands_behind_the_last_key_has_no_influence(loud: float, garbage: float) -> None:
    query, keys, values = (x.to(BF16) for x in normal(1, 64, 200, 200))
    query = query * loud
    clean = flash(query, keys, values, lengths_of(170), 0.125), ring(query, keys, values, (100, 70), 0.125)
    keys[:, :, 170:], values[:, 170:] = garbage, -garbage
    assert torch.equal(flash(query, keys, values, lengths_of(170), 0.125), clean[0])
    assert torch.equal(ring(query, keys, values, (100, 70), 0.125), clean[1])
    twin = attention_twin(query, keys, values, lengths_of(170), 0.125)
    assert relative_l2(clean[0], twin) <= BAR


@pytest.mark.parametrize(("size", "scale"), [(1e6, 1.0), (1.0, 1e5), (1e3, 1e2), (1e-15, 1e20)])
@pytest.mark.parametrize("dtype", [BF16, FP32])
def test_scores_far_beyond_any_window(size: float, scale: float, dtype: torch.dtype) -> None:
    """Up to 5e6 nats: in nearly every row one key is all that is left."""
    query, keys, values = (x.to(dtype) for x in normal(1, 32, 70, 130))
    query = query * size
    exact = attention_oracle(query, keys, values, None, scale)
    for found in (flash(query, keys, values, None, scale), attention_twin(query, keys, values, None, scale)):
        assert relative_l2(found, exact) <= 0.02


@pytest.mark.parametrize("nats", [1e4, 1e6, 2e7])
def test_an_offset_of_all_keys_that_float32_hardly_holds(nats: float) -> None:
    """No bound is known well enough there, so heads follow the maxima; what errs are the scores."""
    query, keys, values = normal(1, 128, 512, 512)
    keys[:, 0] += nats
    query, keys, values = query.to(BF16), keys.to(BF16), values.to(BF16)
    scale = 128**-0.5
    exact = attention_oracle(query, keys, values, None, scale)
    found = flash(query, keys, values, None, scale)
    assert bool(found.isfinite().all())
    assert not bool(((found == 0).all(dim=1) & (exact != 0).any(dim=1)).any())
    assert relative_l2(found, exact) <= BAR + 4 * nats * 2.0**-24


@pytest.mark.parametrize("share", [0.9, 0.95, 0.98])
@pytest.mark.parametrize("size", [math.exp(-14), 1.0, math.exp(14)])
@pytest.mark.parametrize("dtype", [BF16, FP32])
def test_a_head_that_fills_the_window(share: float, size: float, dtype: torch.dtype) -> None:
    """Rows at both edges, with small and with large values, keep the precision of the twin."""
    scale = 128**-0.5
    query, keys, values = normal(1, 128, 256, 300)
    direction = torch.zeros(1, 128, 1)
    direction[:, 0] = 1.0
    query[:, 0], keys[:, 0] = torch.linspace(-4.0, 4.0, 256), 0.0
    # All rows spread equally far, about different levels.
    reach = float(query.norm(dim=1).max() * (keys - keys.mean(dim=2, keepdim=True)).norm(dim=1).max()) * scale
    keys = keys + direction * (share * width(300) - reach) / (8.0 * scale)
    query, keys, values = query.to(dtype), keys.to(dtype), (values * size).to(dtype)
    twin = attention_twin(query, keys, values, None, scale)
    found = flash(query, keys, values, None, scale)
    rows = (found.double() - twin.double()).norm(dim=1) / twin.double().norm(dim=1)
    assert float(rows.max()) <= (3 * BAR if dtype == BF16 else 3e-5)


@pytest.mark.parametrize("dtype", [BF16, FP32])
@pytest.mark.parametrize("nats", [-VALUE_NATS, VALUE_NATS])
def test_equal_keys_at_both_edges_of_the_window(dtype: torch.dtype, nats: float) -> None:
    """The bounds are the scores, so rows reach the edges; values are as small or large as may be."""
    count = 300
    query = torch.zeros(1, 2, 512)
    query[0, 0, ::2], query[0, 0, 1::2] = 1.0, -1.0
    keys = torch.zeros(1, 2, count)
    keys[0, 0] = 0.497 * width(count)
    values = (math.exp(nats) * (1 + torch.rand(1, count, 2))).to(dtype)
    found = flash(query.to(dtype), keys.to(dtype), values, None, 1.0)
    exact = attention_oracle(query.to(dtype), keys.to(dtype), values, None, 1.0)
    rows = (found - exact).norm(dim=1) / exact.norm(dim=1)
    assert float(rows.max()) <= (BAR if dtype == BF16 else 1e-5)


@pytest.mark.parametrize("lengths", [(0,), (0, 60), (60, 0), (7, 31)])
def test_batch_entries_without_a_key_give_zeros(lengths: tuple[int, ...]) -> None:
    query, keys, values = (x.to(BF16) for x in normal(2 * len(lengths), 16, 5, 60))
    for loud in (1.0, 300.0):
        found = flash(query * loud, keys, values, lengths_of(*lengths), 0.25)
        exact = attention_oracle(query * loud, keys, values, lengths_of(*lengths), 0.25)
        assert torch.equal(found == 0, exact == 0)
        assert relative_l2(found, exact) <= BAR


@pytest.mark.parametrize("lnc", [1, 2])
def test_heads_of_one_ring_on_different_paths(lnc: int) -> None:
    """Which ranks leave the window differs too: the queries of one of them are loud. So do offsets."""
    query, keys, values = normal(3, 64, 390, 390)
    query[1] *= 30.0
    query[2, :, :130] *= 30.0
    query[:, 0], keys[0] = 1.0, 0.05 * keys[0]
    keys[:, 0] += torch.tensor([0.0, 800.0, -800.0])[:, None]
    query, keys, values = query.to(BF16), keys.to(BF16), values.to(BF16)
    lengths = (130, 0, 99)
    kept = torch.cat([torch.arange(130) < n for n in lengths])
    exact = attention_oracle(query, keys[:, :, kept], values[:, kept], None, 0.125)
    assert relative_l2(ring(query, keys, values, lengths, 0.125, lnc), exact) <= BAR


def test_shards_of_several_blocks_of_several_heads() -> None:
    """The second head is loud: each block has a mean and a radius of its own, for each rank and head."""
    query, keys, values = normal(2, 16, 2 * 2060, 2 * 2060)
    lengths = (2055, 1)
    query[1] *= 50.0
    keys += torch.arange(2.0)[:, None, None]
    keys[:, :, 2055:2060], keys[:, :, 2061:] = 1e4, -1e4
    values[:, 2048:2055] *= 30.0
    query, keys, values = query.to(BF16), keys.to(BF16), values.to(BF16)
    kept = torch.cat([torch.arange(2060) < n for n in lengths])
    exact = attention_oracle(query, keys[:, :, kept], values[:, kept], None, 0.25)
    assert relative_l2(ring(query, keys, values, lengths, 0.25), exact) <= BAR


@pytest.mark.parametrize("loud", [1.0, 100.0])
def test_keys_that_sbuf_cannot_hold_are_streamed(loud: float) -> None:
    query, keys, values = normal(1, 128, 3, 41_000)
    lengths = lengths_of(40_990)
    found = flash(query * loud, keys, values, lengths, 0.1)
    exact = attention_oracle(query * loud, keys, values, lengths, 0.1)
    assert relative_l2(found, exact) <= 2e-6 * loud


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("resident", [0, state.RESIDENT_BYTES])
def test_the_state_of_queries_between_shards(
    resident: int, lnc: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In HBM as in SBUF, of heads that follow the maxima and others; blocks of queries differ."""
    monkeypatch.setattr(state, "RESIDENT_BYTES", resident)
    size = 514
    query, keys, values = normal(2, 32, 3 * size, 3 * size)
    query[0] *= 40.0
    query[1, 0] = torch.where(torch.arange(3 * size) % size < 512, 1.0, -1.0)
    keys[1, 0] += 1000.0
    query, keys, values = query.to(BF16), keys.to(BF16), values.to(BF16)
    kept = torch.tensor([*range(size), size, 2 * size, 2 * size + 1, 2 * size + 2])
    exact = attention_oracle(query, keys[:, :, kept], values[:, kept], None, 0.1)
    found = ring(query, keys, values, (size, 1, 3), 0.1, lnc)
    for h in range(2):
        assert relative_l2(found[h], exact[h]) <= BAR


@pytest.mark.slow
def test_states_that_sbuf_cannot_hold() -> None:
    query, keys, values = (x.to(BF16) for x in normal(110, 128, 2, 2))
    exact = attention_oracle(query, keys, values, None, 0.1)
    assert relative_l2(ring(query, keys, values, (1, 1), 0.1), exact) <= BAR


@pytest.mark.parametrize("nats", [-200.0, 200.0])
def test_a_shard_without_keys_says_nothing_about_scores(nats: float) -> None:
    query, keys, values = normal(1, 8, 20, 20)
    query[:, 0], keys[:, 0], keys[:, :, 10:] = 1.0, nats, 0.0
    exact = attention_oracle(query, keys[:, :, :10], values[:, :10], None, 1.0)
    assert relative_l2(ring(query, keys, values, (10, 0), 1.0), exact) <= 1e-4
