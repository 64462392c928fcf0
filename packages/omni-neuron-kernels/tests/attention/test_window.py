"""The window is derived from formats; here it is tried on them."""

import math

import pytest
import torch

from omni_neuron.kernels.attention.window import LOST, MARGIN_NATS, VALUE_NATS, above, below, width

COUNTS = [1, 512, 4096, 75_600, 131_072]


@pytest.mark.parametrize("keys", COUNTS)
def test_what_is_flushed_below_the_window_weighs_little(keys: int) -> None:
    """The worst row: one key at the lower edge and a small value, the products of all others no numbers."""
    smallest = torch.finfo(torch.bfloat16).tiny
    largest = math.exp(-below(keys) - VALUE_NATS)
    assert keys * smallest / largest <= 2.0**-LOST * math.exp(-MARGIN_NATS) * (1 + 1e-9)


@pytest.mark.parametrize("keys", COUNTS)
def test_sums_at_the_upper_edge_are_finite(keys: int) -> None:
    largest = math.exp(above(keys) + VALUE_NATS)
    assert keys * largest <= torch.finfo(torch.float32).max * math.exp(-MARGIN_NATS) * (1 + 1e-6)


def test_a_shift_that_is_rounded_stays_inside() -> None:
    """To the nearest octave, or toward zero where a conversion truncates."""
    assert math.log(2) < MARGIN_NATS


def test_a_window_is_wide_for_every_length() -> None:
    """Published slack of up to 85 nats always fits."""
    assert min(width(keys) for keys in COUNTS) > 105


@pytest.mark.parametrize("octaves", [-60, -1, 7, 50])
def test_a_shift_by_octaves_changes_no_rounding(octaves: int) -> None:
    scores = torch.linspace(-20, 20, 4001, dtype=torch.float64)
    plain = scores.exp().bfloat16().double()
    shifted = (scores - octaves * math.log(2)).exp().bfloat16().double() * 2.0**octaves
    # float64 scores that fall exactly between two bfloat16 numbers may go either way
    assert int((plain != shifted).sum()) == 0
