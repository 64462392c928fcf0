import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.kernels.operator import load
from omni_neuron.kernels.proof import relative_l2
from omni_neuron.kernels.rms_norm.operator import MAX_WIDTH, SOURCE
from omni_neuron.kernels.rms_norm.spec import RMS_NORM
from omni_neuron.kernels.rms_norm.twin import rms_norm_twin
from omni_neuron.kernels.roofline import roofline
from omni_neuron.kernels.spec import KERNEL_BAR
from omni_neuron.sim import simulate


def error(tokens: int, width: int, dtype: torch.dtype, scale: float = 1.0, lnc: int = 1) -> float:
    generator = torch.Generator().manual_seed(tokens * width)
    x = (scale * torch.randn(tokens, width, generator=generator)).to(dtype)
    weight = torch.randn(width, generator=generator).to(dtype)
    found = simulate(load(SOURCE), x, weight, 1e-6, lnc=lnc, target="trn2")
    return relative_l2(found, rms_norm_twin(x, weight, 1e-6))


@settings(max_examples=25)
@given(
    tokens=st.integers(1, 900),  # up to eight tiles: more than are under way at once
    width=st.integers(1, 70),
    dtype=st.sampled_from([torch.bfloat16, torch.float32]),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
    lnc=st.sampled_from([1, 2]),
)
def test_any_size(tokens: int, width: int, dtype: torch.dtype, scale: float, lnc: int) -> None:
    assert error(tokens, width, dtype, scale, lnc) <= KERNEL_BAR[dtype]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_the_widest_rows_fit(dtype: torch.dtype) -> None:
    """In fp32 only two tiles are under way then; seven tiles keep all that rotates alive."""
    assert error(800, MAX_WIDTH, dtype) <= KERNEL_BAR[dtype]


@pytest.mark.parametrize("lnc", [1, 2])
def test_the_dmas_are_the_bottleneck(lnc: int) -> None:
    found, _ = roofline(RMS_NORM, RMS_NORM.roofline()[0], lnc)
    assert found.bottleneck == "dma"
    assert found.reached >= 0.9
