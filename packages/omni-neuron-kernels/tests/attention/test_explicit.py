import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from omni_neuron.kernels.attention import explicit_attention
from omni_neuron.runtime.testing import run_on_device

# One rounding to bfloat16 has a relative L2 of 1.66e-3; n of them, with 15 % to spare.
ROUNDINGS = 2
BF16_BAR = 1.15 * 1.66e-3 * math.sqrt(ROUNDINGS)
FP32_BAR = 1e-6

Case = tuple[Tensor, Tensor, Tensor]


def oracle(query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor | None = None) -> Tensor:
    """Row by row in float64, over the allowed keys only."""
    q, k, v = query.double(), key.double(), value.double()
    out = torch.zeros_like(q)
    for b in range(q.shape[0]):
        keep = torch.arange(k.shape[1]) if key_mask is None else key_mask[b].nonzero().flatten()
        if len(keep) == 0:
            continue
        for h in range(q.shape[2]):
            scores = q[b, :, h] @ k[b, keep, h].T / math.sqrt(q.shape[3])
            out[b, :, h] = torch.softmax(scores, dim=-1) @ v[b, keep, h]
    return out


def case(seed: int, batch: int, queries: int, keys: int, heads: int, dim: int, dtype: torch.dtype) -> Case:
    """Normal tensors, scaled so that the largest logit is 4, then rounded to `dtype`."""
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (
        torch.randn(batch, length, heads, dim, generator=generator) for length in (queries, keys, keys)
    )
    logits = torch.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(dim)
    query = query * (4.0 / logits.abs().max())
    return query.to(dtype), key.to(dtype), value.to(dtype)


def relative_l2(actual: Tensor, expected: Tensor) -> float:
    return float((actual.double() - expected).norm() / expected.norm())


def ragged(lengths: list[int], size: int) -> Tensor:
    return torch.arange(size)[None, :] < torch.tensor(lengths)[:, None]


@pytest.mark.hardware
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("dtype", "bar"), [(torch.float32, FP32_BAR), (torch.bfloat16, BF16_BAR)])
@pytest.mark.parametrize("masked", [False, True])
def test_against_float64(seed: int, dtype: torch.dtype, bar: float, masked: bool) -> None:
    query, key, value = case(seed, 2, 96, 130, 3, 64, dtype)
    key_mask = ragged([130, 71], 130) if masked else None
    actual = run_on_device(explicit_attention, query, key, value, key_mask)
    assert actual.dtype == dtype
    assert relative_l2(actual, oracle(query, key, value, key_mask)) <= bar


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**16),
    batch=st.integers(1, 3),
    queries=st.integers(1, 9),
    keys=st.integers(1, 12),
    heads=st.integers(1, 3),
    dim=st.sampled_from([4, 8, 16]),
    data=st.data(),
)
def test_any_mask_against_float64(
    seed: int, batch: int, queries: int, keys: int, heads: int, dim: int, data: st.DataObject
) -> None:
    query, key, value = case(seed, batch, queries, keys, heads, dim, torch.float32)
    rows = data.draw(
        st.lists(st.lists(st.booleans(), min_size=keys, max_size=keys), min_size=batch, max_size=batch)
    )
    key_mask = torch.tensor(rows)
    expected = oracle(query, key, value, key_mask)
    actual = explicit_attention(query, key, value, key_mask)
    # Against the size of the values: a sum of a few of them may cancel to nearly nothing.
    assert float((actual - expected).norm()) <= FP32_BAR * float(value.norm()) * math.sqrt(queries)
    empty = ~key_mask.any(dim=1)
    assert torch.equal(actual[empty], torch.zeros_like(actual[empty]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_masked_keys_have_no_influence_at_all(dtype: torch.dtype) -> None:
    query, key, value = case(0, 2, 5, 8, 2, 16, dtype)
    key_mask = ragged([8, 3], 8)
    other_key, other_value = key.clone(), value.clone()
    other_key[1, 3:], other_value[1, 3:] = 1e4, -1e4
    first = explicit_attention(query, key, value, key_mask)
    second = explicit_attention(query, other_key, other_value, key_mask)
    assert torch.equal(first, second)


def test_rows_survive_logits_of_any_size() -> None:
    """One key wins by far in every row: its value comes back, exactly."""
    keys, dim = 8, 16
    key = torch.eye(keys, dim)[None, :, None, :] * 400
    query = torch.eye(keys, dim)[None, :, None, :] * 400
    value = torch.randn(1, keys, 1, dim, generator=torch.Generator().manual_seed(0))
    assert torch.equal(explicit_attention(query, key, value), value)
    query, key = query - 300, key + 5000
    assert torch.isfinite(explicit_attention(query, key, value, torch.ones(1, keys, dtype=torch.bool))).all()


def test_scale_replaces_the_default() -> None:
    query, key, value = case(1, 1, 4, 6, 2, 16, torch.float32)
    torch.testing.assert_close(
        explicit_attention(query, key, value, scale=0.5), explicit_attention(query * 2, key, value)
    )


@pytest.mark.parametrize("masked", [False, True])
def test_one_graph_without_an_opaque_operator(masked: bool) -> None:
    query, key, value = case(2, 2, 5, 7, 2, 16, torch.bfloat16)
    key_mask = ragged([7, 4], 7) if masked else None
    program = torch.export.export(_Attention(), (query, key, value, key_mask))
    names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert not [name for name in names if "scaled_dot_product" in name or "softmax" in name]
    compiled = torch.compile(explicit_attention, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(query, key, value, key_mask), explicit_attention(query, key, value, key_mask))


class _Attention(torch.nn.Module):
    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor | None) -> Tensor:
        return explicit_attention(query, key, value, key_mask)
