import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from omni_neuron.kernels.limits import BANKS
from omni_neuron.kernels.mlp.plan import tiles_per_pass
from omni_neuron.kernels.mlp.spec import MLP, case
from omni_neuron.kernels.proof import prove


@settings(max_examples=15)
@given(
    tokens=st.sampled_from([1, 2, 127, 128, 129, 513, 700, 1153]),
    hidden=st.integers(1, 700),
    inner=st.integers(1, 1300),
    dtype=st.sampled_from([torch.bfloat16, torch.float32]),
    biases=st.booleans(),
    lnc=st.sampled_from([1, 2]),
)
def test_any_shape_is_its_twin(
    tokens: int, hidden: int, inner: int, dtype: torch.dtype, biases: bool, lnc: int
) -> None:
    assume(tokens * hidden >= 64)  # a single sum may cancel
    proof = prove(MLP, case(tokens, hidden, inner, dtype, biases, biases, dtype == torch.float32), lnc)
    assert proof.kernel_error <= proof.kernel_bar


def test_sbuf_holds_what_the_plan_says() -> None:
    """The widest inner activation of eight tiles; two full passes keep all buffers alive."""
    hidden, dtype = 256, torch.bfloat16
    blocks = max(n for n in range(1, 200) if tiles_per_pass(hidden, n * 128, dtype.itemsize) == BANKS)
    proof = prove(MLP, case(2 * BANKS * 128 - 1, hidden, blocks * 128, dtype, fp32_result=True))
    assert proof.kernel_error <= proof.kernel_bar


def test_the_widest_rows_fit() -> None:
    """Three passes of one tile, beside x, the bias and the inner activation."""
    dtype = torch.float32
    hidden = max(n for n in range(8, 15_000, 8) if tiles_per_pass(n, 128, dtype.itemsize) == 1)
    proof = prove(MLP, case(260, hidden, 128, dtype, fp32_result=True))
    assert proof.kernel_error <= proof.kernel_bar


def test_a_second_pass_is_transposed_beside_more_columns_than_tiles_and_fewer() -> None:
    for hidden in (200, 2600):
        proof = prove(MLP, case(1300, hidden, 130))
        assert proof.kernel_error <= proof.kernel_bar
