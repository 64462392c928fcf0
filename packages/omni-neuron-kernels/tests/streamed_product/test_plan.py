from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.kernels.streamed_product.plan import blocks, passes


@given(first=st.integers(0, 40), length=st.integers(0, 5000), most=st.integers(1, 8))
def test_passes_cover_all_tokens_once_and_are_nearly_equal(first: int, length: int, most: int) -> None:
    found = passes(first * 128, first * 128 + length, most)
    covered = [token for start, size in found for token in range(start, start + size)]
    assert covered == list(range(first * 128, first * 128 + length))
    tiles = [blocks(size) for _, size in found]
    assert all(0 < count <= most for count in tiles)
    assert all(size % 128 == 0 for _, size in found[:-1])
    assert len(tiles) == -(-blocks(length) // most)
    assert not tiles or (tiles[0] == max(tiles) and max(tiles) - min(tiles) <= 1)
