"""Relative position buckets from their definition."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.wan22.models.umt5_attention import relative_position_buckets


@settings(max_examples=30, deadline=None)
@given(
    length=st.integers(1, 40),
    quarter=st.integers(1, 8),
    reach=st.integers(1, 100),
)
def test_buckets_follow_the_definition(length, quarter, reach):
    num_buckets, max_distance = 4 * quarter, quarter + reach
    buckets = relative_position_buckets(length, num_buckets, max_distance)
    assert buckets.shape == (length, length)
    for query in range(length):
        for key in range(length):
            side, bucket = divmod(int(buckets[query, key]), num_buckets // 2)
            distance = abs(key - query)
            assert side == (key > query)
            if distance < quarter:
                assert bucket == distance
            elif distance >= max_distance:
                assert bucket == num_buckets // 2 - 1
            else:
                ideal = quarter * (1 + math.log(distance / quarter) / math.log(max_distance / quarter))
                # The definition rounds down in fp32, where an integer may come out a little below itself.
                assert bucket in (math.floor(ideal - 1e-5), math.floor(ideal + 1e-5))


def test_a_longer_table_begins_with_the_shorter_one():
    long = relative_position_buckets(64, 32, 128)
    assert (long[:20, :20] == relative_position_buckets(20, 32, 128)).all()
