import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.kernels.causal_conv3d.spec import CUBE, PLANE, POINT, TIME, case, useful_taps
from omni_neuron.kernels.causal_conv3d.twin import causal_conv3d_twin


@given(
    size=st.sampled_from([CUBE, TIME, PLANE, POINT, (2, 3, 1), (1, 1, 3)]),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4)),
    past=st.booleans(),
)
def test_useful_taps_are_the_sum_of_a_convolution_of_ones(
    size: tuple[int, int, int], shape: tuple[int, int, int], past: bool
) -> None:
    history = torch.ones(1, 1, size[0] - 1, *shape[1:]) if past else None
    ones = torch.ones(*size, 1, 1)
    result = causal_conv3d_twin(torch.ones(1, 1, *shape), ones, torch.zeros(1), history)
    assert useful_taps(size, shape, past) == result.sum()


@pytest.mark.parametrize("batch", [1, 3])
def test_flops_are_two_for_each_channel_and_tap(batch: int) -> None:
    assert case(5, 7, POINT, (batch, 2, 3, 4)).flops == 2 * 5 * 7 * batch * 24
    assert case(5, 7, CUBE, (batch, 1, 1, 1), past=False).flops == 2 * 5 * 7 * batch
