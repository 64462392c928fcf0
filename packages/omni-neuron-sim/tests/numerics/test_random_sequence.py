import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.sim.numerics.random_sequence import RandomSequence

words = st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4)


@given(words)
def test_any_four_words_are_a_state(state: list[int]) -> None:
    sequence, again = RandomSequence(0), RandomSequence(1)
    sequence.words = again.words = state
    assert sequence.words == state
    np.testing.assert_array_equal(sequence.next().random(4), again.next().random(4))
    assert sequence.words == again.words != state


def test_instructions_and_keys_draw_different_numbers() -> None:
    a, b = RandomSequence(1), RandomSequence(2)
    drawn = [s.next().random() for s in (a, a, b)]
    assert len(set(drawn)) == 3
