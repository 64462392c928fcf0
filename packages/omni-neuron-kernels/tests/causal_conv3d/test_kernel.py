from math import prod

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from omni_neuron.kernels.causal_conv3d import plan as plans
from omni_neuron.kernels.causal_conv3d.spec import CAUSAL_CONV3D, CUBE, PLANE, POINT, TIME, case
from omni_neuron.kernels.interpreter import interpret, profiled
from omni_neuron.kernels.proof import prove, worst_error
from omni_neuron.kernels.spec import KERNEL_BAR, Case

BF16, FP32 = torch.bfloat16, torch.float32


def error(example: Case, lnc: int) -> float:
    """Kernel beside twin."""
    return worst_error(interpret(CAUSAL_CONV3D, example.ranks, lnc), CAUSAL_CONV3D.twin(example.ranks))


@settings(max_examples=40)
@given(
    channels=st.tuples(st.integers(1, 150), st.integers(1, 150)),
    size=st.sampled_from([CUBE, TIME, PLANE, POINT]),
    shape=st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 11), st.integers(1, 9)),
    past=st.booleans(),
    dtype=st.sampled_from([BF16, FP32]),
    lnc=st.sampled_from([1, 2]),
)
def test_any_size(
    channels: tuple[int, int],
    size: tuple[int, int, int],
    shape: tuple[int, ...],
    past: bool,
    dtype: torch.dtype,
    lnc: int,
) -> None:
    assume(channels[1] * prod(shape) >= 64)  # a single sum may cancel
    assert error(case(*channels, size, shape, past, dtype), lnc) <= KERNEL_BAR[dtype]


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize(
    ("sbuf", "resident", "weight_set", "expected"),
    [
        pytest.param(12_000, 104_000, 0, (1, 15, False, True), id="bands of columns"),
        pytest.param(40_000, 0, 26_000, (2, 30, True, True), id="weights loaded ahead"),
        pytest.param(13_000, 0, 0, (4, 30, False, True), id="weights loaded late"),
        pytest.param(8_000, 104_000, 0, (1, 8, False, False), id="frames loaded late"),
    ],
)
def test_little_memory(
    sbuf: int,
    resident: int,
    weight_set: int,
    expected: tuple[int, int, bool, bool],
    lnc: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What large layers do, at a size that the interpreter runs quickly."""
    monkeypatch.setattr(plans, "ROOM_BYTES", sbuf)
    monkeypatch.setattr(plans, "RESIDENT_BYTES", resident)
    monkeypatch.setattr(plans, "WEIGHT_SET_BYTES", weight_set)
    monkeypatch.setattr(plans, "NARROWEST_BAND", 8)
    outputs = 144 if resident else 400
    sets, _, _, wide, weights_ahead, frames_ahead = plans.plan(96, outputs, 3, 3, 9, 30, 2)
    assert (len(sets), wide, weights_ahead, frames_ahead) == expected
    assert error(case(96, outputs, CUBE, (1, 2, 9, 30)), lnc) <= KERNEL_BAR[BF16]


@pytest.mark.parametrize("channels", [(96, 3), (16, 20), (130, 64), (128, 128)])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_what_is_not_finite_is_seen_and_stays_near(channels: tuple[int, int], value: float) -> None:
    """Rows that share a matmul multiply each other's pixels by zeros."""
    example = case(*channels, CUBE, (2, 2, 17, 6))
    x = example.ranks[0][0]
    x[1, 3, 0, 8, 2] = value
    found = ~interpret(CAUSAL_CONV3D, example.ranks)[0][0].isfinite()
    twin = ~CAUSAL_CONV3D.twin(example.ranks)[0][0].isfinite()
    assert twin[1, :, :, 7:10, 1:4].all()
    near = twin.clone()
    near[1, :, :, 4:13, 1:4] = True
    assert not (twin & ~found).any()
    assert not (found & ~near).any()


def test_a_history_of_zeros_is_no_history() -> None:
    example = case(20, 24, CUBE, (1, 2, 6, 5), past=False)
    x, weight, bias, _ = example.ranks[0]
    zeros = torch.zeros(1, 20, 2, 6, 5, dtype=x.dtype)
    without = interpret(CAUSAL_CONV3D, example.ranks)[0][0]
    assert torch.equal(interpret(CAUSAL_CONV3D, [(x, weight, bias, zeros)])[0][0], without)


@pytest.mark.parametrize(
    ("channels", "shape", "least"),
    [
        pytest.param((384, 384), (1, 1, 24, 104), 0.85, id="384"),
        pytest.param((192, 192), (1, 4, 6, 416), 0.72, id="192"),
        pytest.param((96, 96), (1, 4, 6, 832), 0.55, id="96"),
    ],
)
def test_the_pe_is_the_bottleneck(channels: tuple[int, int], shape: tuple[int, ...], least: float) -> None:
    """Start, end and the edges of the image weigh more here than in a layer."""
    found = profiled(CAUSAL_CONV3D, case(*channels, CUBE, shape))
    assert found.bottleneck == "tensor"
    assert found.pe_utilisation >= least


def test_the_widest_layer_on_trn3() -> None:
    assert prove(CAUSAL_CONV3D, case(96, 3, CUBE, (1, 1, 5, 1100)), 2, "trn3").holds
