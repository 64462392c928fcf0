import pytest
import torch
from torch import Tensor

from omni_neuron.kernels.mlp import mlp
from omni_neuron.kernels.mlp.operator import SOURCE, fits_mlp
from omni_neuron.kernels.mlp.spec import MLP, arguments, mlp_oracle
from omni_neuron.kernels.mlp.twin import mlp_twin
from omni_neuron.kernels.proof import relative_l2
from omni_neuron.kernels.spec import KERNEL_BAR
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.testing import run_on_device

BF16, FP32 = torch.bfloat16, torch.float32
HIDDEN, INNER = 72, 200


def inputs(dtype: torch.dtype = BF16, tokens: int = 5) -> tuple[Tensor, ...]:
    """x, w1, b1, w2, b2."""
    return arguments(tokens, HIDDEN, INNER, dtype)[:5]


def on_meta(*shapes: tuple[int, ...], dtype: torch.dtype = BF16) -> list[Tensor]:
    return [torch.empty(shape, dtype=dtype, device="meta") for shape in shapes]


@pytest.mark.parametrize(
    ("hidden", "inner"), [(5120, 13824), (5120, 3456), (5120, 1728), (3072, 14336), (3072, 3584)]
)
@pytest.mark.parametrize("dtype", [BF16, FP32])
def test_the_gate_takes_every_shape_of_wan(hidden: int, inner: int, dtype: torch.dtype) -> None:
    x, w1, w2 = on_meta((75600, hidden), (hidden, inner), (inner, hidden), dtype=dtype)
    assert fits_mlp(x, w1, None, w2, None)


@pytest.mark.parametrize(("dtype", "most"), [(BF16, 66_000), (FP32, 23_000)])
def test_the_widest_activation_is_as_the_catalogue_says(dtype: torch.dtype, most: int) -> None:
    assert any(f"{most:,}" in limit for limit in MLP.limits)
    for inner, fits in ((most, True), (most * 11 // 10, False)):
        x, w1, w2 = on_meta((1, 5120), (5120, inner), (inner, 5120), dtype=dtype)
        assert fits_mlp(x, w1, None, w2, None) is fits


@pytest.mark.parametrize(
    "shapes",
    [
        ((0, 8), (8, 16), (16,), (16, 8), (8,)),
        ((2, 8), (8, 0), (0,), (0, 8), (8,)),
        ((2, 8), (8, 100_000), (100_000,), (100_000, 8), (8,)),
    ],
)
def test_the_gate_refuses_nothing_and_too_much(shapes: tuple[tuple[int, ...], ...]) -> None:
    x, w1, b1, w2, b2 = on_meta(*shapes)
    assert not fits_mlp(x, w1, b1, w2, b2)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("x", ((2, 9), (8, 16), (16,), (16, 8), (8,))),
        ("w1", ((2, 8), (1, 8, 16), (16,), (16, 8), (8,))),
        ("w2", ((2, 8), (8, 16), (16,), (16, 9), (9,))),
        ("b1", ((2, 8), (8, 16), (1,), (16, 8), (8,))),
        ("b2", ((2, 8), (8, 16), (16,), (16, 8), (2, 8))),
    ],
)
def test_shapes_that_disagree_are_refused(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    """torch would broadcast all but two of these."""
    x, w1, b1, w2, b2 = on_meta(*shapes)
    with pytest.raises(InputError, match=f"^{name} has the shape"):
        mlp(x, w1, b1, w2, b2)


@pytest.mark.parametrize("other", range(1, 5))
def test_the_gate_refuses_mixed_dtypes(other: int) -> None:
    given = list(inputs())
    assert fits_mlp(*given)
    given[other] = given[other].float()
    assert not fits_mlp(*given)


def test_the_gate_refuses_fp16() -> None:
    assert not fits_mlp(*inputs(torch.float16))


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize(("dtype", "result"), [(BF16, None), (BF16, FP32), (FP32, None)])
@pytest.mark.parametrize(("tokens", "lnc"), [(1, "1"), (1, "2"), (129, "2")])
def test_the_operator_is_its_twin(
    launched: list[str],
    monkeypatch: pytest.MonkeyPatch,
    dtype: torch.dtype,
    result: torch.dtype | None,
    with_bias: bool,
    tokens: int,
    lnc: str,
) -> None:
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", lnc)
    x, w1, b1, w2, b2 = inputs(dtype, tokens)
    first, second = (b1, b2) if with_bias else (None, None)
    found = mlp(x, w1, first, w2, second, result)
    assert launched == [SOURCE]
    assert found.dtype == (result or dtype)
    expected = mlp_twin(x, w1, first, w2, second, result == FP32)
    assert relative_l2(found, expected) <= KERNEL_BAR[dtype]


def test_leading_dimensions_stay(launched: list[str]) -> None:
    x, *rest = inputs(tokens=6)
    found = mlp(x.reshape(2, 3, HIDDEN), *rest)
    assert torch.equal(found, mlp(x, *rest).reshape(2, 3, HIDDEN))
    assert launched == [SOURCE] * 2


@pytest.mark.parametrize("fp32_result", [False, True])
def test_the_operator_keeps_the_rules_of_torch(launched: list[str], fp32_result: bool) -> None:
    torch.library.opcheck(torch.ops.omni_neuron.mlp.default, (*inputs(), fp32_result))
    assert set(launched) == {SOURCE}


def test_elsewhere_the_twin_computes_it(launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_NEURON_DISABLE_NKI_KERNELS", "1")
    given = inputs()
    assert torch.equal(mlp(*given), mlp_twin(*given, False))
    assert torch.equal(mlp(*given, FP32), mlp_twin(*given, True))
    assert launched == []


def test_partial_sums_of_ranks_add_up() -> None:
    """Inner channels on four ranks, the second bias on one: the sum is that of all channels to fp32."""
    x, w1, b1, w2, b2 = inputs(FP32)
    channels = [slice(50 * r, 50 * r + 50) for r in range(4)]
    parts = [mlp(x, w1[:, c], b1[c], w2[c], b2 if c.start == 0 else None, FP32) for c in channels]
    assert relative_l2(torch.stack(parts).sum(0), mlp_oracle(x, w1, b1, w2, b2, True)) <= 1e-6


def test_another_result_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match=r"result_dtype = torch.float16"):
        mlp(*inputs(), torch.float16)


@pytest.mark.hardware
@pytest.mark.parametrize("dtype", [BF16, FP32])
def test_against_float64(dtype: torch.dtype) -> None:
    given = inputs(dtype, tokens=131)
    found = run_on_device(mlp, *given)
    assert relative_l2(found, mlp_oracle(*given, fp32_result=False)) <= MLP.twin_bar(dtype)
