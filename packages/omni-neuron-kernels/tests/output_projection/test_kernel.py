import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.kernels.output_projection.spec import OUTPUT_PROJECTION
from omni_neuron.kernels.proof import prove
from omni_neuron.kernels.spec import Case


@settings(deadline=None, max_examples=15)
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
    generator = torch.Generator().manual_seed(width)
    attention = torch.randn(heads, dim, tokens, generator=generator).to(dtype)
    weight = torch.randn(heads * dim, width, generator=generator).to(dtype)
    bias = torch.randn(width, generator=generator).to(dtype) if with_bias else None
    proof = prove(OUTPUT_PROJECTION, Case("any", ((attention, weight, bias, True),)), lnc)
    assert proof.kernel_error <= 1e-6  # fp32 sums of exact products, also of bf16 inputs
