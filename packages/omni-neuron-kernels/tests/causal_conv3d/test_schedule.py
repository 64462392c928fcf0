import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.kernels.causal_conv3d.plan import contraction
from omni_neuron.kernels.causal_conv3d.schedule import passes, psum_blocks
from omni_neuron.kernels.limits import BANK_COLUMNS


@given(lines=st.integers(1, 70), width=st.integers(1, 1400))
def test_blocks_cover_every_pixel_once_and_fit_a_bank(lines: int, width: int) -> None:
    blocks = psum_blocks(lines, width)
    assert all((i1 - i0) * (w1 - w0) <= BANK_COLUMNS for i0, i1, w0, w1 in blocks)
    assert all(i0 < i1 <= lines and w0 < w1 <= width for i0, i1, w0, w1 in blocks)
    assert sum((i1 - i0) * (w1 - w0) for i0, i1, w0, w1 in blocks) == lines * width
    assert len({(i0, w0) for i0, _, w0, _ in blocks}) == len(blocks)


@pytest.mark.parametrize("channels", [96, 128, 192, 14])
@pytest.mark.parametrize("stack", [1, 2, 4])
def test_the_first_matmul_reads_the_present_frame_at_the_centre(channels: int, stack: int) -> None:
    chunks = contraction(channels, 3)
    found = passes(chunks, [None, "before", "present"], 3, stack)
    index, frame, offset, tap = found[0]
    assert (index, frame) == (0, 2)
    assert (offset, tap) == {1: (1, 1), 3: (1, 0), 9: (0, 0)}[chunks[0][2]]
    assert len(set(found)) == len(found)
    assert all(frame > 0 for _, frame, _, _ in found)
