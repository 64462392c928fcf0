"""A video as one picture: its frames in a grid, in reading order."""

import math
from pathlib import Path

import numpy as np
from PIL import Image

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.media.frames import Frames, check_frames
from omni_neuron.wan22.media.output import whole_file

GAP = 4  # pixels between frames
BACKGROUND = (24, 24, 24)
SMALLEST_SIDE = 192  # a smaller frame is enlarged by a whole factor
LARGEST_SIDE = 480  # a larger frame is reduced


def write_contact_sheet(path: str | Path, frames: Frames, max_frames: int = 20) -> Path:
    """Write a PNG with evenly chosen frames, the first and the last among them.

    Args:
        path: ends in ``.png``; replaced only when the new file is complete.
        frames: uint8 ``[T, H, W, 3]``, RGB.
        max_frames: most frames to show, at least 1.

    Raises:
        InputError: a bad suffix, frames or number, or a place that cannot be written.
    """
    check_frames(frames)
    if Path(path).suffix.lower() != ".png":
        raise InputError(f"contact sheet is {str(path)!r}, but its name must end in .png.")
    if max_frames < 1:
        raise InputError(f"max_frames is {max_frames}, but it must be at least 1.")
    count = min(len(frames), max_frames)
    chosen = np.linspace(0, len(frames) - 1, count).round().astype(int)
    tiles = [_tile(frame) for frame in frames[chosen]]
    width, height = tiles[0].size
    columns = math.ceil(math.sqrt(count * height / width))
    rows = math.ceil(count / columns)
    sheet = Image.new("RGB", (GAP + columns * (width + GAP), GAP + rows * (height + GAP)), BACKGROUND)
    for index, tile in enumerate(tiles):
        row, column = divmod(index, columns)
        sheet.paste(tile, (GAP + column * (width + GAP), GAP + row * (height + GAP)))
    with whole_file(path) as draft:
        sheet.save(draft, format="PNG")
    return Path(path)


def _tile(frame: Frames) -> Image.Image:
    picture = Image.fromarray(frame)
    side = max(picture.size)
    if side < SMALLEST_SIDE:
        factor = math.ceil(SMALLEST_SIDE / side)
        return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)
    if side > LARGEST_SIDE:
        picture.thumbnail((LARGEST_SIDE, LARGEST_SIDE), Image.Resampling.LANCZOS)
    return picture
