from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.kernels.limits import BANK_BYTES, BANK_COLUMNS, ceil_div


@given(st.integers(0, 10**6), st.integers(1, 10**4))
def test_the_fewest_pieces_that_cover_a_length(length: int, size: int) -> None:
    pieces = ceil_div(length, size)
    assert (pieces - 1) * size < length <= pieces * size


def test_a_bank_holds_fp32_sums() -> None:
    assert BANK_BYTES == 4 * BANK_COLUMNS
