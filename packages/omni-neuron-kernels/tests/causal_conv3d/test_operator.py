import pytest
import torch

from omni_neuron.kernels.causal_conv3d import causal_conv3d, spec
from omni_neuron.kernels.causal_conv3d.operator import SOURCE, fits_causal_conv3d
from omni_neuron.kernels.causal_conv3d.spec import (
    CAUSAL_CONV3D,
    CUBE,
    PLANE,
    POINT,
    TIME,
    case,
    causal_conv3d_oracle,
)
from omni_neuron.kernels.causal_conv3d.twin import causal_conv3d_twin
from omni_neuron.kernels.proof import relative_l2
from omni_neuron.kernels.spec import KERNEL_BAR, Arguments
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.testing import run_on_device

DTYPES = [torch.bfloat16, torch.float32]


@pytest.fixture(autouse=True)
def _no_compiled_forms() -> None:
    """torch compiles one function for eight sizes at most."""
    torch.compiler.reset()


def arguments(
    size: tuple[int, int, int] = CUBE, past: bool = True, dtype: torch.dtype = torch.bfloat16
) -> Arguments:
    return spec.arguments(20, 24, size, (2, 2, 5, 6), past, dtype)


@pytest.mark.hardware
@pytest.mark.parametrize("size", [CUBE, TIME, PLANE, POINT])
@pytest.mark.parametrize("dtype", DTYPES)
def test_against_float64(size: tuple[int, int, int], dtype: torch.dtype) -> None:
    given = case(192, 96, size, (1, 2, 12, 16), dtype=dtype).ranks[0]
    actual = run_on_device(causal_conv3d, *given)
    assert actual.dtype == dtype
    assert relative_l2(actual, causal_conv3d_oracle(*given)) <= CAUSAL_CONV3D.twin_bar(dtype)


@pytest.mark.parametrize("lnc", ["1", "2"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("past", [False, True])
def test_the_operator_equals_its_twin(
    past: bool, dtype: torch.dtype, lnc: str, launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", lnc)
    given = arguments(past=past, dtype=dtype)
    found = torch.ops.omni_neuron.causal_conv3d(*given)
    assert relative_l2(found, causal_conv3d_twin(*given)) <= KERNEL_BAR[dtype]
    assert torch.equal(causal_conv3d(*given), found)
    assert launched == [SOURCE] * 2


def test_views_are_taken_as_they_are(launched: list[str]) -> None:
    x, weight, bias, history = arguments()
    turned, packed = x.transpose(3, 4), weight.transpose(3, 4).contiguous().transpose(3, 4)
    past = history.transpose(3, 4)
    found = causal_conv3d(turned, packed, bias, past)
    assert relative_l2(found, causal_conv3d_twin(turned, weight, bias, past)) <= KERNEL_BAR[torch.bfloat16]
    assert launched == [SOURCE]


@pytest.mark.parametrize("past", [False, True])
def test_the_operator_is_well_formed(launched: list[str], past: bool) -> None:
    given = arguments(past=past)
    torch.library.opcheck(
        torch.ops.omni_neuron.causal_conv3d.default,
        given,
        test_utils=("test_schema", "test_faketensor"),
    )
    assert set(launched) == {SOURCE}


def test_one_graph(launched: list[str]) -> None:
    given = arguments()
    compiled = torch.compile(causal_conv3d, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(*given), causal_conv3d(*given))
    assert launched == [SOURCE] * 2


def test_without_the_interpreter_the_twin_runs(launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKI_SIMULATOR", "0")
    given = arguments()
    assert torch.equal(causal_conv3d(*given), causal_conv3d_twin(*given))
    assert launched == []


def test_what_does_not_fit_goes_to_the_twin(launched: list[str]) -> None:
    given = case(8, 8, (1, 5, 5), (1, 1, 6, 6)).ranks[0]
    assert not fits_causal_conv3d(*given)
    assert torch.equal(causal_conv3d(*given), causal_conv3d_twin(*given))
    assert launched == []


@pytest.mark.parametrize("size", [CUBE, TIME, PLANE, POINT])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("past", [False, True])
def test_the_gate_accepts(size: tuple[int, int, int], dtype: torch.dtype, past: bool) -> None:
    assert fits_causal_conv3d(*arguments(size, past, dtype))


def test_the_gate_refuses() -> None:
    x, weight, bias, history = arguments()
    assert fits_causal_conv3d(x, weight, bias, history)
    refused = {
        "half precision": (x.half(), weight.half(), bias.half(), None),
        "weight of another dtype": (x, weight.float(), bias, history),
        "bias of another dtype": (x, weight, bias.float(), history),
        "history of another dtype": (x, weight, bias, history.float()),
        "no pixels": (x[..., :0], weight, bias, history[..., :0]),
        "two frames of taps": (x, weight[:2], bias, history[:, :, :1]),
        "taps that are not square": (x, weight[:, :1], bias, history),
    }
    assert [name for name, given in refused.items() if fits_causal_conv3d(*given)] == []
    wide = torch.zeros(1, 2049, 1, 1, 1, dtype=x.dtype)
    assert not fits_causal_conv3d(wide, torch.zeros(1, 1, 1, 2049, 24, dtype=x.dtype), bias, None)
    large = torch.zeros(1, 2048, 1, 2, 2)
    assert not fits_causal_conv3d(large, torch.zeros(3, 3, 3, 2048, 128), torch.zeros(128), None)


def test_other_shapes_are_refused() -> None:
    """torch would take half of these, and return another number of frames or of pixels."""
    x, weight, bias, history = arguments()
    refused = {
        "x has the shape": (x[0], weight, bias, None),
        "weight has the shape": (x, weight[0], bias, None),
        "weight has": (x[:, 1:], weight, bias, history[:, 1:]),
        "bias has": (x, weight, bias[:1], history),
        "history has": (x, weight, bias, history[:, :, :1]),
        "history": (x, weight[:1], bias, history),
        "A convolution of 3x3x3 over 0 frames": (x[:, :, :0], weight, bias, history),
        "A convolution of 3x2x3": (x, weight[:, :2], bias, history),
        "A convolution of 3x3x2": (x, weight[:, :, :2], bias, history),
    }
    for message, given in refused.items():
        with pytest.raises(InputError, match=f"^{message}"):
            causal_conv3d(*given)


def test_a_history_of_no_frames_is_none(launched: list[str]) -> None:
    x, weight, bias, _ = arguments(POINT)
    assert torch.equal(causal_conv3d(x, weight, bias, x[:, :, :0]), causal_conv3d(x, weight, bias))
    assert launched == [SOURCE] * 2
