"""Rotary tables and rotation against complex numbers in double precision."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.rope import RotaryTables, axis_dims, build_rotary_tables, rotate


@pytest.mark.parametrize(
    ("head_dim", "dims"),
    [(128, (44, 42, 42)), (64, (24, 20, 20)), (40, (16, 12, 12)), (24, (8, 8, 8)), (16, (8, 4, 4))],
)
def test_axes_share_a_head(head_dim, dims):
    assert axis_dims(head_dim) == dims


@pytest.mark.parametrize("head_dim", [12, 40, 128])
def test_tables_are_exact_angles_in_time_major_order(head_dim):
    grid = (2, 3, 4)
    cos, sin = build_rotary_tables(grid, head_dim, 1024)
    assert cos.shape == sin.shape == (1, 24, 1, head_dim // 2)
    assert cos.dtype == sin.dtype == torch.float32
    expected = []
    for position in itertools.product(*map(range, grid)):
        turns = [
            p * 10000.0 ** (-2 * i / n)
            for p, n in zip(position, axis_dims(head_dim), strict=True)
            for i in range(n // 2)
        ]
        expected.append(torch.polar(torch.ones(head_dim // 2).double(), torch.tensor(turns).double()))
    expected = torch.stack(expected)[None, :, None]
    torch.testing.assert_close(cos.double(), expected.real, rtol=0, atol=6e-8)
    torch.testing.assert_close(sin.double(), expected.imag, rtol=0, atol=6e-8)


def test_far_positions_keep_float64_angles():
    cos, _ = build_rotary_tables((1000, 1, 1), 12, 1024)
    angle = torch.tensor(999 * 10000.0**-0.5, dtype=torch.float64)
    assert abs(float(cos[0, 999, 0, 1]) - float(angle.cos())) <= 6e-8


def test_tables_are_built_once_per_grid():
    tables, cpu = RotaryTables(12, 8, ParallelGroup.single("cp")), torch.device("cpu")
    with torch.inference_mode():
        cos, sin = tables((2, 2, 2), cpu)
    assert not cos.is_inference()
    assert tables((2, 2, 2), cpu)[0] is cos
    assert tables((2, 2, 2), cpu)[1] is sin
    for actual, expected in zip(tables((2, 2, 3), cpu), build_rotary_tables((2, 2, 3), 12, 8), strict=True):
        assert torch.equal(actual, expected)


@pytest.mark.parametrize("axis", range(3))
def test_an_axis_beyond_the_model_is_refused(axis):
    grid = tuple(9 if index == axis else 1 for index in range(3))
    name = ("time", "height", "width")[axis]
    with pytest.raises(InputError, match=f"{name}=9 tokens must be at most rope_max_seq_len=8"):
        build_rotary_tables(grid, 12, 8)


@given(seed=st.integers(0, 1000), shift=st.integers(0, 20), gap=st.integers(0, 20))
def test_scores_depend_on_distance_only(seed, shift, gap):
    generator = torch.Generator().manual_seed(seed)
    query, key = (torch.randn(1, 1, 1, 24, generator=generator) for _ in range(2))
    cos, sin = build_rotary_tables((41, 1, 1), 24, 64)

    def score(q_at, k_at):
        turned = (rotate(x, cos[:, [at]], sin[:, [at]]) for x, at in ((query, q_at), (key, k_at)))
        return torch.sum(torch.mul(*turned))

    torch.testing.assert_close(score(gap, 0), score(gap + shift, shift), rtol=0, atol=2e-5)


@pytest.mark.parametrize("traced", [False, True])
def test_rotation_is_a_product_of_complex_numbers(traced, monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: traced)
    x = torch.randn(2, 10, 3, 24)
    cos, sin = build_rotary_tables((2, 1, 5), 24, 8)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)))
    expected = torch.view_as_real(pairs * torch.complex(cos.double(), sin.double())).flatten(-2)
    torch.testing.assert_close(rotate(x, cos, sin).double(), expected, rtol=0, atol=1e-6)
