"""Frames to an MP4 that every player opens."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.media.frames import Frames, check_frames
from omni_neuron.wan22.media.output import whole_file

# Nearly transparent to the eye; 0 is lossless, 23 the codec's default.
QUALITY = 17
MAX_FPS = 1000


def write_video(path: str | Path, frames: Frames, fps: float = 16.0) -> Path:
    """Write H.264 in yuv420p, which halves the colours' resolution and so needs even sizes.

    Args:
        path: ends in ``.mp4``; replaced only when the new file is complete.
        frames: uint8 ``[T, H, W, 3]``, RGB; an odd height or width gets its last row or column twice.
        fps: frames a second.

    Raises:
        InputError: a bad suffix, frames or rate, or a place that cannot be written.
    """
    check_frames(frames)
    check_video(path, fps)
    frames = _even(frames)
    with whole_file(path) as draft, av.open(draft, "w", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1001))
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": str(QUALITY)}
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return Path(path)


def check_video(path: str | Path, fps: float) -> None:
    """Refuse a name or a rate that `write_video` would refuse."""
    if Path(path).suffix.lower() != ".mp4":
        raise InputError(f"output is {str(path)!r}, but a video's name must end in .mp4.")
    if not 0 < fps <= MAX_FPS:
        raise InputError(f"fps is {fps}, but it must lie above 0 and be at most {MAX_FPS}.")


def _even(frames: Frames) -> Frames:
    height, width = frames.shape[1:3]
    return np.pad(frames, ((0, 0), (0, height % 2), (0, width % 2), (0, 0)), mode="edge")
