"""Heads for tokens and back, and what becomes of heads that do not divide."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.distributed.context_parallel import ulysses_attention, ulysses_heads
from omni_neuron.distributed.errors import ShardingError
from omni_neuron.distributed.process_groups import new_parallel_group
from omni_neuron.distributed.simulation import simulate_groups, simulate_ranks


@given(heads=st.integers(1, 7), order=st.integers(2, 4).flatmap(lambda u: st.permutations(range(u))))
def test_each_rank_attends_with_its_heads_to_all_tokens_in_list_order(heads, order):
    size, tokens = len(order), 2
    whole = torch.arange(1.0, 1 + 2 * size * tokens * heads * 3).reshape(2, size * tokens, heads, 3)
    groups = simulate_groups(size, lambda: new_parallel_group("ulysses", [order]))

    def exchange(group):
        mine = whole.narrow(1, group.rank_in_group * tokens, tokens)
        seen = []

        def attention(query, key, value):
            seen.extend((query, key, value))
            return query + 10 * key + 100 * value

        return seen, ulysses_attention(attention, mine, 2 * mine, 3 * mine, group, pad_heads=True)

    padded = -(-heads // size) * size
    with_padding = torch.nn.functional.pad(whole, (0, 0, 0, padded - heads))
    for group, (seen, result) in zip(groups, simulate_ranks(groups, exchange), strict=True):
        mine = with_padding.chunk(size, 2)[group.rank_in_group]
        for factor, tensor in enumerate(seen, 1):
            assert torch.equal(tensor, factor * mine)
        assert torch.equal(result, 321 * whole.narrow(1, group.rank_in_group * tokens, tokens))


def test_heads_that_do_not_divide_are_refused_or_counted():
    assert ulysses_heads(40, 8) == 5
    assert ulysses_heads(5, 4, pad=True) == 2
    assert ulysses_heads(5, 8, pad=True) == 1
    message = "heads=5 of each tensor-parallel rank must be divisible by ulysses=4: choose ulysses from 1, 5"
    with pytest.raises(ShardingError, match=message):
        ulysses_heads(5, 4)
    group = simulate_groups(4, lambda: new_parallel_group("ulysses", [range(4)]))[0]
    x = torch.zeros(1, 2, 5, 4)
    with pytest.raises(ShardingError, match="choose ulysses from "):
        ulysses_attention(lambda q, k, v: q, x, x, x, group)
