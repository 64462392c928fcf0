"""What a video is between the engine and the files: uint8 ``[T, H, W, 3]``, RGB."""

import numpy as np
from numpy.typing import NDArray

from omni_neuron.runtime.errors import InputError

Frames = NDArray[np.uint8]


def check_frames(frames: Frames) -> None:
    """Refuse anything but uint8 ``[T, H, W, 3]`` with at least one frame and one pixel."""
    if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[-1] != 3 or frames.size == 0:
        raise InputError(
            f"frames are {frames.dtype} {list(frames.shape)}, but they must be uint8 [T, H, W, 3], not empty."
        )
