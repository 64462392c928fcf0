"""Upsampling of pixels and channels against their index formulas."""

import itertools

import pytest
import torch
from torch.nn import functional

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.vae_upsample import DuplicateUpsample, repeat_pixels


def test_repeat_pixels_is_nearest_neighbour():
    images = torch.randn(2, 3, 5, 7)
    expected = functional.interpolate(images, scale_factor=(2.0, 2.0), mode="nearest-exact")
    assert torch.equal(repeat_pixels(images), expected)
    assert torch.equal(repeat_pixels(images.transpose(0, 1)), expected.transpose(0, 1))


@pytest.mark.parametrize(("inputs", "outputs", "temporal"), [(8, 8, True), (8, 4, False), (16, 4, True)])
def test_duplication_follows_its_index_formula(inputs, outputs, temporal):
    shortcut = DuplicateUpsample(inputs, outputs, temporal=temporal)
    factor = 2 if temporal else 1
    repeats = outputs * 4 * factor // inputs
    x = torch.randn(2, inputs, 3, 2, 4)
    result = shortcut(x, False)
    assert result.shape == (2, outputs, 3 * factor, 4, 8)
    for o, i, j, k in itertools.product(range(outputs), range(factor), range(2), range(2)):
        source = (4 * factor * o + 4 * i + 2 * j + k) // repeats
        assert torch.equal(result[:, o, i::factor, j::2, k::2], x[:, source])


def test_a_first_chunk_keeps_the_last_copy():
    shortcut = DuplicateUpsample(8, 8, temporal=True)
    x = torch.randn(1, 8, 1, 2, 2)
    both = shortcut(x, torch.tensor(False))
    assert torch.equal(both, shortcut(x, False))
    assert torch.equal(shortcut(x, True), both[:, :, 1:])
    static = shortcut(x, torch.tensor(True))
    assert torch.equal(static[:, :, 1:], both[:, :, 1:])
    assert static[:, :, :1].count_nonzero() == 0


def test_widths_that_do_not_match_are_refused():
    with pytest.raises(InputError, match="VAE stage of 10 to 4 channels"):
        DuplicateUpsample(10, 4, temporal=False)
