import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.kernels.limits import SBUF_BYTES
from omni_neuron.kernels.qkv.plan import block_tokens, even, groups, resident_bytes


@given(total=st.integers(0, 1000), parts=st.integers(1, 20))
def test_even_pieces_cover_everything(total: int, parts: int) -> None:
    pieces = even(total, parts)
    assert [start for start, _ in pieces] == [sum(size for _, size in pieces[:i]) for i in range(parts)]
    assert sum(size for _, size in pieces) == total
    assert max(size for _, size in pieces) - min(size for _, size in pieces) <= 1


@given(count=st.integers(1, 200), most=st.integers(1, 10))
def test_as_few_groups_as_can_be(count: int, most: int) -> None:
    found = groups(count, most)
    assert len(found) == -(-count // most)
    assert 1 <= min(size for _, size in found) <= max(size for _, size in found) <= most


@pytest.mark.parametrize(
    ("hidden", "width", "itemsize", "tokens"),
    [
        (5120, 640, 2, 512),
        (5120, 1280, 2, 512),
        (3072, 768, 2, 512),
        (5120, 2560, 2, 512),
        (5120, 5120, 2, 384),
        (3072, 3072, 4, 256),
    ],
)
def test_blocks_of_the_models(hidden: int, width: int, itemsize: int, tokens: int) -> None:
    widths = (width, width, width)
    assert block_tokens(hidden, widths, itemsize) == tokens
    assert resident_bytes(tokens, hidden, widths, itemsize) <= SBUF_BYTES


def test_nothing_fits_for_ever() -> None:
    assert block_tokens(65536, (16384, 16384, 16384), 4) == 0
