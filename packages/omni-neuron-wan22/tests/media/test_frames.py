"""What counts as frames."""

import numpy as np
import pytest

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.media.frames import check_frames


def test_frames_are_accepted():
    check_frames(np.zeros((1, 2, 3, 3), np.uint8))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((2, 8, 8, 3), np.float32), ((8, 8, 3), np.uint8), ((2, 8, 8, 4), np.uint8), ((0, 8, 8, 3), np.uint8)],
)
def test_other_arrays_are_refused(shape, dtype):
    with pytest.raises(InputError, match="uint8"):
        check_frames(np.zeros(shape, dtype))
