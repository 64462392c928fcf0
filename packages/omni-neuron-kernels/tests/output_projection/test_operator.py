import pytest
import torch
from torch import Tensor

from omni_neuron.kernels.output_projection import output_projection
from omni_neuron.kernels.output_projection.operator import SOURCE, fits_output_projection
from omni_neuron.kernels.output_projection.spec import OUTPUT_PROJECTION, arguments, output_projection_oracle
from omni_neuron.kernels.output_projection.twin import output_projection_twin
from omni_neuron.kernels.proof import relative_l2
from omni_neuron.kernels.spec import KERNEL_BAR
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.testing import run_on_device

BF16, FP32 = torch.bfloat16, torch.float32


def inputs(dtype: torch.dtype = BF16, tokens: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    attention, weight, bias, _ = arguments(3, 40, tokens, 200, dtype)
    return attention, weight, bias


@pytest.mark.parametrize("heads", [5, 10, 40])
@pytest.mark.parametrize("dtype", [BF16, FP32])
def test_the_gate_takes_every_shape_of_wan(heads: int, dtype: torch.dtype) -> None:
    attention = torch.empty(heads, 128, 75600, dtype=dtype, device="meta")
    weight = torch.empty(heads * 128, 5120, dtype=dtype, device="meta")
    assert fits_output_projection(attention, weight, None)
    assert fits_output_projection(attention, weight, torch.empty(5120, dtype=dtype, device="meta"))


@pytest.mark.parametrize(("dtype", "most"), [(BF16, 43_000), (FP32, 20_000)])
def test_the_most_channels_are_as_the_catalogue_says(dtype: torch.dtype, most: int) -> None:
    assert any(f"{most:,}" in limit for limit in OUTPUT_PROJECTION.limits)
    for inner, fits in ((most, True), (most * 11 // 10, False)):
        attention = torch.empty(inner // 100, 100, 1, dtype=dtype, device="meta")
        weight = torch.empty(inner, 5120, dtype=dtype, device="meta")
        assert fits_output_projection(attention, weight, None) is fits


@pytest.mark.parametrize(
    ("attention", "weight", "bias"),
    [
        ((3, 40, 0), (120, 200), None),
        ((3, 40, 5), (120, 0), None),
        ((3, 136, 5), (408, 200), None),
        ((400, 128, 5), (51200, 200), None),
    ],
)
def test_the_gate_refuses_nothing_and_too_much(
    attention: tuple[int, ...], weight: tuple[int, ...], bias: tuple[int, ...] | None
) -> None:
    def tensor(shape: tuple[int, ...], dtype: torch.dtype = BF16) -> Tensor:
        return torch.empty(shape, dtype=dtype, device="meta")

    added = None if bias is None else tensor(bias)
    assert not fits_output_projection(tensor(attention), tensor(weight), added)


@pytest.mark.parametrize("name", ["attention", "weight", "bias"])
def test_shapes_that_disagree_are_refused(name: str) -> None:
    """torch would broadcast a bias of one element."""
    attention, weight, bias = inputs()
    given = {"attention": attention, "weight": weight, "bias": bias}
    given[name] = given[name][0] if name == "attention" else given[name][:1]
    with pytest.raises(InputError, match=f"^{name} has the shape"):
        output_projection(**given)


def test_the_gate_refuses_other_dtypes() -> None:
    attention, weight, bias = inputs()
    assert not fits_output_projection(attention, weight.float(), bias)
    assert not fits_output_projection(attention, weight, bias.float())
    assert not fits_output_projection(attention.half(), weight.half(), None)


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize(("dtype", "result"), [(BF16, None), (BF16, FP32), (FP32, None)])
@pytest.mark.parametrize("lnc", ["1", "2"])
def test_the_operator_is_its_twin(
    launched: list[str],
    monkeypatch: pytest.MonkeyPatch,
    dtype: torch.dtype,
    result: torch.dtype | None,
    with_bias: bool,
    lnc: str,
) -> None:
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", lnc)
    attention, weight, bias = inputs(dtype)
    added = bias if with_bias else None
    found = output_projection(attention, weight, added, result)
    assert launched == [SOURCE]
    assert found.dtype == (result or dtype)
    expected = output_projection_twin(attention, weight, added, result == FP32)
    assert relative_l2(found, expected) <= KERNEL_BAR[dtype]


def test_a_view_of_another_layout_is_taken(launched: list[str]) -> None:
    attention, weight, bias = inputs()
    view = attention.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    assert torch.equal(output_projection(view, weight, bias), output_projection(attention, weight, bias))
    assert launched == [SOURCE] * 2


@pytest.mark.parametrize("fp32_result", [False, True])
def test_the_operator_keeps_the_rules_of_torch(launched: list[str], fp32_result: bool) -> None:
    operator = torch.ops.omni_neuron.output_projection.default
    torch.library.opcheck(operator, (*inputs(), fp32_result))
    assert set(launched) == {SOURCE}


def test_elsewhere_the_twin_computes_it(launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_NEURON_DISABLE_NKI_KERNELS", "1")
    given = inputs()
    assert torch.equal(output_projection(*given), output_projection_twin(*given, False))
    assert torch.equal(output_projection(*given, FP32), output_projection_twin(*given, True))
    assert launched == []


def test_partial_sums_of_ranks_add_up_without_a_rounding() -> None:
    """Heads on three ranks, the bias on one: the sum is that of all heads to fp32."""
    attention, weight, bias = inputs()
    parts = [
        output_projection(attention[h : h + 1], weight[40 * h : 40 * h + 40], bias if h == 0 else None, FP32)
        for h in range(3)
    ]
    whole = output_projection_oracle(attention, weight, bias, True)
    assert relative_l2(parts[0] + parts[1] + parts[2], whole) <= 1e-6


def test_another_result_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match=r"result_dtype = torch.float16"):
        output_projection(*inputs(), torch.float16)


@pytest.mark.hardware
@pytest.mark.parametrize("dtype", [BF16, FP32])
def test_against_float64(dtype: torch.dtype) -> None:
    given = inputs(dtype, tokens=131)
    found = run_on_device(output_projection, *given)
    expected = output_projection_oracle(*given, fp32_result=False)
    assert relative_l2(found, expected) <= OUTPUT_PROJECTION.twin_bar(dtype)
