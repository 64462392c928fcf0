"""Sharding errors name field, value, rule and remedy."""

import pytest

from omni_neuron.distributed.errors import CheckpointError, LayoutError, ShardingError, divisors, shard_size
from omni_neuron.runtime.errors import InputError


def test_shard_size_divides():
    assert shard_size("num_attention_heads", 40, 8) == 5


def test_what_does_not_divide_is_refused_with_the_choices():
    with pytest.raises(ShardingError) as caught:
        shard_size("num_attention_heads", 12, 8)
    assert str(caught.value) == (
        "num_attention_heads=12 must be divisible by tp=8: choose tp from 1, 2, 3, 4, 6, 12."
    )


@pytest.mark.parametrize("value", [0, -4])
def test_an_empty_dimension_is_refused(value):
    with pytest.raises(ShardingError, match=f"ffn_dim={value} must be at least 1"):
        shard_size("ffn_dim", value, 2)


def test_divisors():
    assert divisors(1) == [1]
    assert divisors(12) == [1, 2, 3, 4, 6, 12]


def test_every_error_is_one_that_the_caller_can_correct():
    for error in (LayoutError, ShardingError, CheckpointError):
        assert issubclass(error, InputError)
