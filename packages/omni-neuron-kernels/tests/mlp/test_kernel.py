import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.kernels.mlp.room import tiles_per_pass
from omni_neuron.kernels.mlp.spec import MLP
from omni_neuron.kernels.proof import profiled, prove
from omni_neuron.kernels.spec import Case


def case(tokens: int, hidden: int, inner: int, dtype: torch.dtype, biases: bool) -> Case:
    generator = torch.Generator().manual_seed(hidden)
    x = torch.randn(tokens, hidden, generator=generator).to(dtype)
    w1 = (torch.randn(hidden, inner, generator=generator) / hidden**0.5).to(dtype)
    w2 = (torch.randn(inner, hidden, generator=generator) / inner**0.5).to(dtype)
    b1 = torch.randn(inner, generator=generator).to(dtype) if biases else None
    b2 = torch.randn(hidden, generator=generator).to(dtype) if biases else None
    return Case("any", ((x, w1, b1, w2, b2, dtype == torch.float32),))


@settings(deadline=None, max_examples=15)
@given(
    tokens=st.sampled_from([1, 2, 127, 128, 129, 513, 700, 1153]),
    hidden=st.integers(1, 700),
    inner=st.integers(1, 700),
    dtype=st.sampled_from([torch.bfloat16, torch.float32]),
    biases=st.booleans(),
    lnc=st.sampled_from([1, 2]),
)
def test_any_shape_is_its_twin(
    tokens: int, hidden: int, inner: int, dtype: torch.dtype, biases: bool, lnc: int
) -> None:
    proof = prove(MLP, case(tokens, hidden, inner, dtype, biases), lnc)
    assert proof.kernel_error <= proof.kernel_bar


@pytest.mark.parametrize(
    ("hidden", "inner", "dtype"),
    [(1024, 2048, torch.bfloat16), (512, 4096, torch.float32), (5120, 512, torch.float32)],
)
def test_sbuf_holds_what_the_room_says(hidden: int, inner: int, dtype: torch.dtype) -> None:
    """A full pass of the most tiles with all buffers live; the interpreter refuses what does not fit."""
    tiles = tiles_per_pass(hidden, inner, dtype.itemsize)
    cost = profiled(MLP, case(tiles * 128, hidden, inner, dtype, True))
    assert cost.sbuf[0].amount <= cost.sbuf[0].limit
