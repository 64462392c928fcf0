import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.kernels.causal_conv3d.plan import (
    ROOM_BYTES,
    contraction,
    last_offset,
    output_spans,
    plan,
    tile_rows,
    weight_sets,
)
from omni_neuron.kernels.limits import PARTITIONS

# Inputs, outputs, kt, kh, and the image per latent pixel, of every convolution of stride 1 in the decoders.
DECODER_21 = [
    (16, 384, 3, 3, 1), (384, 384, 3, 3, 1), (384, 768, 3, 1, 1), (384, 192, 1, 3, 2),
    (192, 384, 3, 3, 2), (192, 384, 1, 1, 2), (384, 768, 3, 1, 2), (384, 192, 1, 3, 4),
    (192, 192, 3, 3, 4), (192, 96, 1, 3, 8), (96, 96, 3, 3, 8), (96, 3, 3, 3, 8),
]  # fmt: skip
DECODER_22 = [
    (48, 1024, 3, 3, 1), (1024, 1024, 3, 3, 1), (1024, 2048, 3, 1, 1), (1024, 1024, 1, 3, 2),
    (1024, 1024, 3, 3, 2), (1024, 2048, 3, 1, 2), (1024, 1024, 1, 3, 4), (1024, 512, 3, 3, 4),
    (1024, 512, 1, 1, 4), (512, 512, 3, 3, 4), (512, 512, 1, 3, 8), (512, 256, 3, 3, 8),
    (256, 256, 3, 3, 8), (256, 12, 3, 3, 8),
]  # fmt: skip
LATENTS = [(DECODER_21, 60, 104), (DECODER_21, 90, 160), (DECODER_22, 44, 80)]


def matmuls(channels: int) -> int:
    """Matmuls of one 3x3x3 convolution into one tile of output channels."""
    return sum(27 // copies for _, _, copies in contraction(channels, 3))


@given(channels=st.integers(1, 2048), side=st.sampled_from([1, 3]))
def test_chunks_cover_the_channels_and_fit_the_array(channels: int, side: int) -> None:
    chunks = contraction(channels, side)
    assert [c for first, count, _ in chunks for c in range(first, first + count)] == list(range(channels))
    assert all(count * copies <= PARTITIONS for _, count, copies in chunks)
    assert {copies for _, _, copies in chunks} <= ({1, 3, 9} if side == 3 else {1})


@given(channels=st.integers(1, 2048))
def test_stacking_never_costs_a_matmul(channels: int) -> None:
    assert matmuls(channels) <= 27 * -(-channels // PARTITIONS)


@pytest.mark.parametrize(
    ("channels", "expected"), [(96, 21), (192, 42), (160, 36), (384, 81), (48, 12), (16, 6), (12, 3)]
)
def test_matmuls_of_the_channel_counts_of_the_vae(channels: int, expected: int) -> None:
    assert matmuls(channels) == expected


@given(channels=st.integers(1, 2048), side=st.sampled_from([1, 3]), most=st.sampled_from([1, 2, 4]))
def test_spans_cover_the_outputs_and_fit_the_array(channels: int, side: int, most: int) -> None:
    spans = output_spans(channels, side, most)
    assert [c for first, count, _ in spans for c in range(first, first + count)] == list(range(channels))
    assert all(stack == 1 or count * stack <= PARTITIONS for _, count, stack in spans)
    assert all(stack == 1 for _, _, stack in spans[:-1])


def test_remainders_of_output_channels_take_several_rows() -> None:
    assert output_spans(192, 3, 4) == [(0, 128, 1), (128, 64, 2)]
    assert output_spans(3, 3, 4) == [(0, 3, 4)]
    assert output_spans(96, 3, 4) == [(0, 96, 1)]


@pytest.mark.parametrize(("copies", "reaches"), [(1, [2, 3, 5]), (3, [2, 3, 5]), (9, [0, 3, 3])])
def test_row_offsets_reach_every_row_of_the_taps(copies: int, reaches: list[int]) -> None:
    assert [last_offset(copies, 3, stack) for stack in (1, 2, 4)] == reaches


@pytest.mark.parametrize(("layers", "height", "width"), LATENTS)
@pytest.mark.parametrize("itemsize", [2, 4])
def test_every_layer_of_the_decoders_fits(
    layers: list[tuple[int, ...]], height: int, width: int, itemsize: int
) -> None:
    for inputs, outputs, kt, side, scale in layers:
        sets, stack, rows, wide, _, ahead = plan(
            inputs, outputs, kt, side, height * scale, width * scale, itemsize
        )
        assert rows >= 4
        assert rows % stack == 0
        assert ahead
        weights = weight_sets(contraction(inputs, side), outputs, kt, side, stack, itemsize)
        assert weights[0] == sets
        lines = 2 * rows + 2 * kt * sum(
            tile_rows(copies, side, stack, rows) for _, _, copies in contraction(inputs, side)
        )
        assert weights[1] + lines * (wide + side - 1) * itemsize <= ROOM_BYTES


def test_what_does_not_fit_has_no_rows() -> None:
    assert plan(2048, 128, 3, 3, 8, 8, 4)[2] == 0
