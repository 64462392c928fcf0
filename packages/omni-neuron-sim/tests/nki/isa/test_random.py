from typing import Any

import numpy as np
import pytest

from omni_neuron.sim import KernelError, simulate
from omni_neuron.sim.nki import isa as nisa
from omni_neuron.sim.nki import language as nl
from omni_neuron.sim.testing import on_tiles


def test_numbers_are_uniform_and_repeat_for_a_seed() -> None:
    def body(dst: Any) -> None:
        nisa.rand2(dst, -1.0, 3.0)

    first, again, other = (
        on_tiles(body, shape=(128, 512), dtype="float32", target="trn3", seed=s) for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert first.min() >= -1
    assert first.max() <= 3
    assert abs(first.mean() - 1) < 5 * (4 / 12**0.5) / 65536**0.5


def test_a_seed_in_the_kernel_starts_the_sequence_anew() -> None:
    def body(dst: Any) -> None:
        for i in range(2):
            nisa.set_rng_seed(7)
            nisa.rng(dst[:, i : i + 1])

    found = on_tiles(body, shape=(16, 2), dtype="uint32")
    np.testing.assert_array_equal(found[:, 0], found[:, 1])


def test_a_state_that_was_kept_gives_the_same_numbers_again() -> None:
    def body(first: Any, second: Any, third: Any) -> None:
        state = nl.ndarray((16, 6), nl.uint32)
        nisa.rand_get_state(state)
        nisa.rng(first)
        nisa.rng(second)
        nisa.rand_set_state(state)
        nisa.rng(third)

    first, second, third = on_tiles(body, outputs=3, shape=[(16, 8)] * 3, dtype=["uint32"] * 3)
    np.testing.assert_array_equal(first, third)
    assert (first != second).all()


def test_a_state_of_a_later_launch_goes_on_where_it_was_kept() -> None:
    def keep(state: Any, drawn: Any) -> None:
        nisa.set_rng_seed(5)
        nisa.rng(drawn)
        nisa.rand_get_state(state)
        nisa.rng(drawn)

    def go_on(drawn: Any, state: Any) -> None:
        nisa.rand_set_state(state)
        nisa.rng(drawn)

    state, drawn = on_tiles(keep, outputs=2, shape=[(1, 4), (1, 32)], dtype=["uint32"] * 2)
    np.testing.assert_array_equal(on_tiles(go_on, state, shape=(1, 32), dtype="uint32", seed=9), drawn)


@pytest.mark.parametrize(("columns", "dtype", "rule"), [(3, nl.uint32, "shape"), (4, nl.int32, "dtype")])
def test_a_state_is_four_words(columns: int, dtype: Any, rule: str) -> None:
    for instruction in (nisa.rand_get_state, nisa.rand_set_state):
        with pytest.raises(KernelError) as caught:
            simulate(lambda i=instruction: i(nl.zeros((1, columns), dtype)) and None)
        assert caught.value.rule == rule


def test_dropout_zeroes_the_asked_share() -> None:
    ones = np.ones((128, 512), np.float32)
    found = on_tiles(lambda d, t: nisa.dropout(d, t, 0.25), ones, shape=ones.shape, dtype="float32")
    assert set(np.unique(found)) == {0.0, 1.0}
    assert abs(found.mean() - 0.75) < 5 * (0.1875 / 65536) ** 0.5
