import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.kernels.attention.explicit import explicit_attention
from omni_neuron.kernels.attention.spec import attention_oracle, drawn, ring_attention_oracle, ring_case
from omni_neuron.kernels.attention.twin import QUERIES_AT_ONCE, attention_twin, ring_attention_twin
from omni_neuron.kernels.proof import relative_l2


@settings(max_examples=20)
@given(heads=st.sampled_from([2, 4]), queries=st.integers(1, 40), keys=st.integers(1, 60), data=st.data())
def test_any_lengths_against_float64(heads: int, queries: int, keys: int, data: st.DataObject) -> None:
    ((query, key, value),), scale = drawn(1, heads, queries, keys, 16, torch.float32)
    lengths = torch.tensor(
        data.draw(st.lists(st.integers(0, keys), min_size=2, max_size=2)), dtype=torch.int32
    )
    found = attention_twin(query, key, value, lengths, scale)
    exact = attention_oracle(query, key, value, lengths, scale)
    torch.testing.assert_close(found.double(), exact, atol=2e-6, rtol=1e-5)


def test_many_queries_are_computed_in_pieces() -> None:
    ((query, key, value),), scale = drawn(1, 1, QUERIES_AT_ONCE + 3, 5, 8, torch.float32)
    whole = attention_oracle(query, key, value, None, scale)
    assert relative_l2(attention_twin(query, key, value, None, scale), whole) < 1e-6


def test_it_is_the_attention_of_the_package() -> None:
    """The plain operations, which models use, and the twin, which follows the kernel."""
    ((query, key, value),), scale = drawn(1, 3, 20, 30, 16, torch.float32)
    plain = explicit_attention(
        query.permute(2, 0, 1)[None], key.permute(2, 0, 1)[None], value.transpose(0, 1)[None], None, scale
    )
    torch.testing.assert_close(
        attention_twin(query, key, value, None, scale), plain[0].permute(1, 2, 0), atol=2e-6, rtol=1e-5
    )


@pytest.mark.parametrize("lengths", [None, (7, 0, 3)])
def test_a_ring_is_one_attention(lengths: tuple[int, ...] | None) -> None:
    case = ring_case((2, 0, 1), 2, 7, 16, torch.float32, lengths)
    exact = ring_attention_oracle(case.ranks)
    for (found,), (expected,) in zip(ring_attention_twin(list(case.ranks)), exact, strict=True):
        assert relative_l2(found, expected) < 1e-6


def test_scores_of_any_size() -> None:
    ((query, key, value),), scale = drawn(1, 1, 9, 12, 8, torch.float32)
    for factor in (0.0, 1e3, 1e6):
        found = attention_twin(query * factor, key, value, None, scale)
        assert relative_l2(found, attention_oracle(query * factor, key, value, None, scale)) < 1e-5
    assert not bool(found.isnan().any())
    assert math.isfinite(float(found.sum()))
