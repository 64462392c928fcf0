"""The frames of a video as one picture."""

import numpy as np
import pytest
from PIL import Image

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.media.contact_sheet import BACKGROUND, GAP, write_contact_sheet


def numbered(count, height=64, width=64):
    """Frame ``i`` is filled with the colour ``(i, 255 - i, 7)``."""
    frames = np.empty((count, height, width, 3), np.uint8)
    for index in range(count):
        frames[index] = (index, 255 - index, 7)
    return frames


def tiles(path, height, width):
    """Colours at the centres of the grid's cells, in reading order."""
    sheet = np.asarray(Image.open(path))
    rows, columns = (sheet.shape[0] - GAP) // (height + GAP), (sheet.shape[1] - GAP) // (width + GAP)
    assert sheet.shape == (GAP + rows * (height + GAP), GAP + columns * (width + GAP), 3)
    centres = sheet[GAP + height // 2 :: height + GAP, GAP + width // 2 :: width + GAP]
    return [tuple(colour) for colour in centres.reshape(rows * columns, 3).tolist()]


def test_small_frames_are_enlarged_and_in_reading_order(tmp_path):
    path = write_contact_sheet(tmp_path / "out.png", numbered(17))
    found = tiles(path, 192, 192)
    assert found[:17] == [(index, 255 - index, 7) for index in range(17)]
    assert set(found[17:]) == {BACKGROUND}


def test_pixels_are_repeated_and_not_blurred(tmp_path):
    frames = np.random.default_rng(0).integers(0, 256, (1, 64, 64, 3), dtype=np.uint8)
    sheet = np.asarray(Image.open(write_contact_sheet(tmp_path / "out.png", frames)))
    tile = sheet[GAP : GAP + 192, GAP : GAP + 192]
    assert np.array_equal(tile, frames[0].repeat(3, axis=0).repeat(3, axis=1))


def test_long_videos_are_sampled_from_first_to_last(tmp_path):
    path = write_contact_sheet(tmp_path / "out.png", numbered(81), max_frames=5)
    assert [red for red, *_ in tiles(path, 192, 192)[:5]] == [0, 20, 40, 60, 80]


def test_large_frames_are_reduced(tmp_path):
    path = write_contact_sheet(tmp_path / "out.png", numbered(2, 480, 832))
    width, height = Image.open(path).size
    assert width <= 2 * 480 + 3 * GAP
    assert height <= 2 * 480 + 3 * GAP


def test_other_suffixes_and_numbers_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"\.png"):
        write_contact_sheet(tmp_path / "out.jpg", numbered(1))
    with pytest.raises(InputError, match="max_frames"):
        write_contact_sheet(tmp_path / "out.png", numbered(1), max_frames=0)
