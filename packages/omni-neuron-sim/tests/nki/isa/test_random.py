from typing import Any

import numpy as np

from omni_neuron.sim.nki import isa as nisa
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


def test_dropout_zeroes_the_asked_share() -> None:
    ones = np.ones((128, 512), np.float32)
    found = on_tiles(lambda d, t: nisa.dropout(d, t, 0.25), ones, shape=ones.shape, dtype="float32")
    assert set(np.unique(found)) == {0.0, 1.0}
    assert abs(found.mean() - 0.75) < 5 * (0.1875 / 65536) ** 0.5
