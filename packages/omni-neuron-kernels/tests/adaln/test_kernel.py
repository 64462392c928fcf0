import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.kernels.adaln.operator import MAX_WIDTH, SOURCE
from omni_neuron.kernels.adaln.spec import ADALN, adaln_oracle, arguments
from omni_neuron.kernels.adaln.twin import adaln_twin
from omni_neuron.kernels.operator import load
from omni_neuron.kernels.proof import relative_l2, worst_error
from omni_neuron.kernels.roofline import roofline
from omni_neuron.kernels.spec import KERNEL_BAR, Arguments, Case, Results, as_results
from omni_neuron.sim import simulate

FORMS = ["norm", "sum", "gated"]
DTYPES = [torch.bfloat16, torch.float32]


def run(values: Arguments, lnc: int = 1) -> Results:
    return as_results(simulate(load(SOURCE), *values, lnc=lnc, target="trn2"))


def error(values: Arguments, lnc: int = 1) -> float:
    return worst_error([run(values, lnc)], [as_results(adaln_twin(*values))])


@settings(max_examples=25)
@given(
    batch=st.integers(1, 2),
    tokens=st.integers(1, 700),
    width=st.integers(8, 70),
    dtype=st.sampled_from(DTYPES),
    form=st.sampled_from(FORMS),
    lnc=st.sampled_from([1, 2]),
)
def test_any_size(batch: int, tokens: int, width: int, dtype: torch.dtype, form: str, lnc: int) -> None:
    assert error(arguments((batch, tokens, width), dtype, form), lnc) <= KERNEL_BAR[dtype]


@pytest.mark.parametrize("width", [4096, 5120, MAX_WIDTH])
@pytest.mark.parametrize("dtype", DTYPES)
def test_wide_rows_fit(width: int, dtype: torch.dtype) -> None:
    """The wider the rows, the fewer of the seven tiles are under way: from four down to one."""
    assert error(arguments((1, 800, width), dtype, "gated")) <= KERNEL_BAR[dtype]


@pytest.mark.parametrize("width", [1, 2, 513, 1025])
def test_a_row_of_one_column_more_than_whole_pieces(width: int) -> None:
    """The Vector engine takes moments of 512 columns, of even and of odd ones."""
    values = arguments((1, 140, width), torch.float32, "norm")
    assert error(values) <= 1e-6


@settings(max_examples=20)
@given(
    mean=st.sampled_from([0.0, 30.0, 1000.0, -1000.0, 1e5]),
    tokens=st.integers(129, 200),  # two tiles: statistics on the Scalar and on the Vector engine
    width=st.integers(8, 1200),
    form=st.sampled_from(FORMS),
)
def test_a_large_mean_costs_what_float32_must_lose(mean: float, tokens: int, width: int, form: str) -> None:
    """With the mean in float32, its rounding of 2^-24 * |mean| is an error of every centred value.

    mean(t^2) - mean(t)^2 would lose 2^-24 * mean^2, which is everything at 1e5.
    """
    values = arguments((1, tokens, width), torch.float32, form, mean)
    (*_, out), (*_, expected) = run(values), adaln_oracle(*values)
    assert relative_l2(out, expected) <= 1e-6 + 8 * 2**-24 * abs(mean)


def test_rows_without_variance_give_the_shift() -> None:
    x, *rest = arguments((1, 140, 64), torch.float32, "norm")
    (out,) = run((torch.full_like(x, 3.0), *rest))
    shift = rest[3]
    assert torch.equal(out, shift[:, None].expand_as(out))


@pytest.mark.parametrize(("form", "lnc", "share"), [("gated", 1, 0.8), ("sum", 1, 0.8), ("norm", 1, 0.6)])
def test_predicted_costs(form: str, lnc: int, share: float) -> None:
    """With an update the DMAs are the bottleneck; without one no engine stands out."""
    values = arguments((1, 2048, 5120), torch.bfloat16, form)
    found, _ = roofline(ADALN, Case(form, (values,)), lnc)
    assert found.reached >= share
    assert form == "norm" or found.bottleneck == "dma"
