import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from omni_neuron.kernels.limits import BANKS
from omni_neuron.kernels.output_projection.plan import RESIDENT_TILES, fits_whole, tiles_per_pass
from omni_neuron.kernels.output_projection.spec import OUTPUT_PROJECTION, case
from omni_neuron.kernels.proof import prove


@settings(max_examples=15)
@given(
    heads=st.integers(1, 4),
    dim=st.integers(1, 128),
    tokens=st.sampled_from([1, 2, 127, 128, 129, 513, 700]),
    width=st.integers(1, 1300),
    dtype=st.sampled_from([torch.bfloat16, torch.float32]),
    with_bias=st.booleans(),
    lnc=st.sampled_from([1, 2]),
)
def test_any_shape_is_its_twin(
    heads: int, dim: int, tokens: int, width: int, dtype: torch.dtype, with_bias: bool, lnc: int
) -> None:
    assume(tokens * width >= 64)  # a single sum may cancel
    proof = prove(OUTPUT_PROJECTION, case(heads, dim, tokens, width, dtype, with_bias, True), lnc)
    assert proof.kernel_error <= 1e-6  # fp32 sums of exact products, also of bf16 inputs


@pytest.mark.parametrize(
    ("whole", "width", "dtype"), [(True, 1024, torch.bfloat16), (False, 1100, torch.float32)]
)
def test_sbuf_holds_what_the_plan_says(whole: bool, width: int, dtype: torch.dtype) -> None:
    """The most heads whose weight stays, or streams past eight tiles.

    Three full passes keep all buffers alive, and the interpreter refuses what does not fit.
    """
    tiles, each = RESIDENT_TILES if whole else BANKS, dtype.itemsize

    def fits(heads: int) -> bool:
        if whole:
            return fits_whole(heads * 128, width, tiles, each)
        return tiles_per_pass(heads * 128, width, each) == tiles

    heads = max(n for n in range(1, 100) if fits(n))
    assert fits_whole(heads * 128, width, RESIDENT_TILES, each) is whole
    proof = prove(OUTPUT_PROJECTION, case(heads, 128, 3 * tiles * 128 - 1, width, dtype, True, True))
    assert proof.kernel_error <= 1e-6
