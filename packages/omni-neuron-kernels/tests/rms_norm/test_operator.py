import pytest
import torch

from omni_neuron.kernels.proof import relative_l2
from omni_neuron.kernels.rms_norm import rms_norm
from omni_neuron.kernels.rms_norm.operator import MAX_WIDTH, SOURCE, fits_rms_norm
from omni_neuron.kernels.rms_norm.spec import EPS, RMS_NORM, arguments, rms_norm_oracle
from omni_neuron.kernels.rms_norm.twin import rms_norm_twin
from omni_neuron.kernels.spec import KERNEL_BAR
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.testing import run_on_device

DTYPES = [torch.bfloat16, torch.float32]


@pytest.mark.hardware
@pytest.mark.parametrize("dtype", DTYPES)
def test_against_float64(dtype: torch.dtype) -> None:
    x, weight, _ = arguments((2, 150, 640), dtype)
    actual = run_on_device(rms_norm, x, weight, EPS)
    assert relative_l2(actual, rms_norm_oracle(x, weight, EPS)) <= RMS_NORM.twin_bar(dtype)


@pytest.mark.parametrize("lnc", ["1", "2"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_in_the_interpreter_the_kernel_runs(
    launched: list[str], monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, lnc: str
) -> None:
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", lnc)
    x, weight, _ = arguments((2, 3, 35, 96), dtype)
    found, twin = rms_norm(x, weight, EPS), rms_norm_twin(x, weight, EPS)
    assert launched == [SOURCE]
    assert found.dtype == dtype
    assert relative_l2(found, twin) <= KERNEL_BAR[dtype]


def test_a_view_is_what_it_shows(launched: list[str]) -> None:
    x, weight, _ = arguments((40, 30), torch.float32)
    view = x.T[:, 4:24]
    assert relative_l2(rms_norm(view, weight[:20], EPS), rms_norm_twin(view, weight[:20], EPS)) <= 1e-6
    assert launched == [SOURCE]


def test_elsewhere_the_twin_runs(launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKI_SIMULATOR", "0")
    x, weight, _ = arguments((7, 24))
    assert torch.equal(rms_norm(x, weight, EPS), rms_norm_twin(x, weight, EPS))
    assert launched == []


def test_what_the_gate_refuses_goes_to_the_twin(launched: list[str]) -> None:
    x, weight, _ = arguments((7, 24))
    assert torch.equal(rms_norm(x, weight.float(), EPS), rms_norm_twin(x, weight.float(), EPS))
    assert launched == []


def test_the_gate() -> None:
    x, weight, _ = arguments((4, 16))
    assert fits_rms_norm(x, weight)
    assert fits_rms_norm(x.float(), weight.float())
    assert not fits_rms_norm(x, weight.float())
    assert not fits_rms_norm(x.half(), weight.half())
    assert not fits_rms_norm(x[:0], weight)
    wide = torch.zeros(1, MAX_WIDTH + 1)
    assert fits_rms_norm(wide[:, 1:], wide[0, 1:])
    assert not fits_rms_norm(wide, wide[0])


@pytest.mark.parametrize("shape", [(1,), (8,), (1, 16), (4, 16)])
def test_a_weight_that_is_no_row_is_refused(shape: tuple[int, ...]) -> None:
    """torch would broadcast all but one of these."""
    x, *_ = arguments((4, 16))
    with pytest.raises(InputError, match=r"weight has the shape .* it must be \(16,\)"):
        rms_norm(x, torch.ones(shape, dtype=x.dtype), EPS)


def test_the_operator_is_sound(launched: list[str]) -> None:
    x, weight, _ = arguments((2, 5, 32))
    torch.library.opcheck(torch.ops.omni_neuron.rms_norm.default, (x, weight, EPS))
    assert set(launched) == {SOURCE}


def test_one_graph(launched: list[str]) -> None:
    x, weight, _ = arguments((2, 5, 32))
    compiled = torch.compile(rms_norm, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x, weight, EPS), rms_norm(x, weight, EPS))
    assert launched == [SOURCE] * 2
