"""Frames go into an MP4 and come back."""

import av
import numpy as np
import pytest

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.media.video import write_video


def moving_gradient(frames, height, width):
    """A smooth picture that drifts, uint8 ``[T, H, W, 3]``."""
    time, y, x = np.meshgrid(np.arange(frames), np.arange(height), np.arange(width), indexing="ij")
    channels = [x / width, y / height, ((x + y + 2 * time) % 64) / 64]
    return (np.stack(channels, axis=-1) * 200 + 20).astype(np.uint8)


def read(path):
    with av.open(path) as container:
        stream = container.streams.video[0]
        frames = np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(stream)])
        return frames, stream.average_rate, stream.codec_context.name, stream.codec_context.pix_fmt


@pytest.mark.parametrize(("count", "fps"), [(17, 16), (1, 16), (5, 24), (9, 23.976)])
def test_count_size_rate_and_format(tmp_path, count, fps):
    path = write_video(tmp_path / "out.mp4", moving_gradient(count, 64, 96), fps=fps)
    frames, rate, codec, pixels = read(path)
    assert frames.shape == (count, 64, 96, 3)
    assert float(rate) == pytest.approx(fps, rel=1e-3)
    assert (codec, pixels) == ("h264", "yuv420p")


def test_colours_and_order_survive_the_codec(tmp_path):
    """Within what 4:2:0 and the quantiser cost; swapped channels or frames would cost tens of levels."""
    frames = moving_gradient(17, 64, 64)
    decoded, *_ = read(write_video(tmp_path / "out.mp4", frames))
    error = np.abs(decoded.astype(int) - frames.astype(int))
    assert error.mean() < 4
    assert error.mean(axis=(1, 2, 3)).max() < 6


@pytest.mark.parametrize("colour", [(230, 20, 20), (20, 230, 20), (20, 20, 230)])
def test_a_colour_stays_itself(tmp_path, colour):
    frames = np.broadcast_to(np.array(colour, np.uint8), (3, 32, 32, 3))
    decoded, *_ = read(write_video(tmp_path / "out.mp4", frames))
    assert np.abs(decoded.astype(int) - frames.astype(int)).max() <= 8


def test_odd_sizes_are_filled_up(tmp_path):
    decoded, *_ = read(write_video(tmp_path / "out.mp4", moving_gradient(3, 33, 47)))
    assert decoded.shape == (3, 34, 48, 3)


@pytest.mark.parametrize(
    "frames",
    [
        np.zeros((2, 8, 8, 3), np.float32),
        np.zeros((8, 8, 3), np.uint8),
        np.zeros((2, 8, 8, 4), np.uint8),
        np.zeros((0, 8, 8, 3), np.uint8),
    ],
)
def test_other_arrays_are_refused(tmp_path, frames):
    with pytest.raises(InputError, match="uint8"):
        write_video(tmp_path / "out.mp4", frames)
    assert list(tmp_path.iterdir()) == []


def test_other_suffixes_and_rates_are_refused(tmp_path):
    frames = moving_gradient(1, 8, 8)
    with pytest.raises(InputError, match=r"\.mp4"):
        write_video(tmp_path / "out.gif", frames)
    with pytest.raises(InputError, match="fps"):
        write_video(tmp_path / "out.mp4", frames, fps=0)
