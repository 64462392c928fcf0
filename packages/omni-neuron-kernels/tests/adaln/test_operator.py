import pytest
import torch
from torch import Tensor

from omni_neuron.kernels.adaln import adaln, residual_adaln
from omni_neuron.kernels.adaln.operator import MAX_WIDTH, SOURCE, fits_adaln
from omni_neuron.kernels.adaln.spec import ADALN, EPS, adaln_oracle, arguments
from omni_neuron.kernels.adaln.twin import adaln_twin
from omni_neuron.kernels.proof import relative_l2
from omni_neuron.kernels.spec import KERNEL_BAR
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.testing import run_on_device

DTYPES = [torch.bfloat16, torch.float32]
SHAPE = (2, 150, 64)


def gated(dtype: torch.dtype, shape: tuple[int, int, int] = SHAPE) -> tuple[Tensor, ...]:
    """x, update, gate, scale, shift; the last three `[B, 1, H]`, as the transformer has them."""
    x, update, gate, scale, shift, _, _ = arguments(shape, dtype, "gated")
    return x, update, gate[:, None], scale[:, None], shift[:, None]


@pytest.mark.hardware
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", ["norm", "sum", "gated"])
def test_against_float64(dtype: torch.dtype, form: str) -> None:
    x, update, gate, scale, shift, eps, unit_offset = arguments(SHAPE, dtype, form)
    rows = (scale[:, None], shift[:, None], eps, unit_offset)
    if update is None:
        found = (run_on_device(adaln, x, *rows),)
    else:
        gates = None if gate is None else gate[:, None]
        found = run_on_device(residual_adaln, x, update, gates, *rows)
    expected = adaln_oracle(x, update, gate, scale, shift, eps, unit_offset)
    for actual, exact in zip(found, expected, strict=True):
        assert actual.dtype == dtype
        assert relative_l2(actual, exact) <= ADALN.twin_bar(dtype)


@pytest.mark.parametrize("lnc", ["1", "2"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_in_the_interpreter_the_kernel_runs(
    launched: list[str], monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, lnc: str
) -> None:
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", lnc)
    x, update, gate, scale, shift = gated(dtype)
    expected = adaln_twin(x, update, gate, scale, shift, EPS, True)
    for actual, twin in zip(residual_adaln(x, update, gate, scale, shift, EPS), expected, strict=True):
        assert relative_l2(actual, twin) <= KERNEL_BAR[dtype]
    found = adaln(x, scale, shift, EPS)
    assert relative_l2(found, adaln_twin(x, None, None, scale, shift, EPS, True)) <= KERNEL_BAR[dtype]
    assert launched == [SOURCE] * 2


def test_weight_and_bias_serve_every_entry_of_a_batch(launched: list[str]) -> None:
    x, update, _, scale, shift = gated(torch.float32)
    weight, bias = scale[0, 0], shift[0, 0]
    found = residual_adaln(x, update, None, weight, bias, EPS, unit_offset=False)
    expected = torch.nn.functional.layer_norm(x + update, x.shape[-1:], weight, bias, EPS)
    assert relative_l2(found[1], expected) <= 1e-6
    assert launched == [SOURCE]


def test_elsewhere_the_twin_runs(launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKI_SIMULATOR", "0")
    x, update, gate, scale, shift = gated(torch.bfloat16)
    found = residual_adaln(x, update, gate, scale, shift, EPS)
    expected = adaln_twin(x, update, gate, scale, shift, EPS, True)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert torch.equal(adaln(x, scale, shift, EPS), adaln_twin(x, None, None, scale, shift, EPS, True))
    assert launched == []


def test_a_modulation_for_each_token_goes_to_the_twin(launched: list[str]) -> None:
    x, _, _, scale, shift = gated(torch.bfloat16)
    scale, shift = (v.expand_as(x).contiguous() for v in (scale, shift))
    assert torch.equal(adaln(x, scale, shift, EPS), adaln_twin(x, None, None, scale, shift, EPS, True))
    assert launched == []


def test_the_gate() -> None:
    x, update, gate, scale, shift = gated(torch.bfloat16)
    assert fits_adaln(x, None, None, scale, shift)
    assert fits_adaln(x, update, gate, scale[0, 0], shift[:1])
    assert fits_adaln(x.float(), update.float(), gate, scale, shift)
    assert not fits_adaln(x.half(), None, None, scale, shift)
    assert not fits_adaln(x[:, :0], None, None, scale, shift)
    assert not fits_adaln(x, None, None, scale.bfloat16(), shift)
    assert not fits_adaln(x, None, None, scale.expand_as(x), shift)
    assert not fits_adaln(x, update.float(), gate, scale, shift)
    assert not fits_adaln(x, update, gate.bfloat16(), scale, shift)
    assert fits_adaln(x[:, :1], None, None, scale, shift)  # where `[B, 1, H]` is one for each token, too
    wide = torch.zeros(1, 1, MAX_WIDTH + 1)
    assert fits_adaln(wide[..., 1:], None, None, wide[..., 1:], wide[..., 1:])
    assert not fits_adaln(wide, None, None, wide, wide)


def test_other_shapes_are_refused() -> None:
    x, update, gate, scale, shift = gated(torch.bfloat16)
    refused = {
        "x": (x[0], update[0], gate[0], scale[0], shift[0]),
        "update": (x, update[:, :1], gate, scale, shift),
        "gate": (x, update, gate[..., :1], scale, shift),
        "scale": (x, update, gate, scale[:, 0], shift),
        "shift": (x, update, gate, scale, shift.expand_as(x)[:, :7]),
    }
    for name, given in refused.items():
        with pytest.raises(InputError, match=f"^{name} has the shape"):
            residual_adaln(*given, EPS)
        if name in ("x", "scale", "shift"):
            with pytest.raises(InputError, match=f"^{name} has the shape"):
                adaln(given[0], *given[3:], EPS)


def test_the_operators_are_sound(launched: list[str]) -> None:
    x, update, gate, scale, shift = gated(torch.bfloat16, (2, 5, 32))
    rows = (scale[:, 0], shift[:, 0])
    torch.library.opcheck(torch.ops.omni_neuron.adaln.default, (x, *rows, EPS, True))
    for gates in (gate[:, 0], None):
        values = (x, update, gates, *rows, EPS, True)
        torch.library.opcheck(torch.ops.omni_neuron.residual_adaln.default, values)
    assert set(launched) == {SOURCE}


def test_one_graph(launched: list[str]) -> None:
    values = (*gated(torch.bfloat16, (2, 5, 32)), EPS)
    compiled = torch.compile(residual_adaln, backend="aot_eager", fullgraph=True)
    found, expected = compiled(*values), residual_adaln(*values)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert launched == [SOURCE] * 2
