import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from omni_neuron.kernels.qkv import fused_to_halves, neighbours_to_halves, qkv


def neighbours_turned(rows: Tensor, angles: Tensor) -> Tensor:
    """Wan's rotation: rows `[T, heads, D]`, dimensions (2 i, 2 i + 1) as one complex number."""
    pairs = torch.view_as_complex(rows.unflatten(-1, (-1, 2)).contiguous())
    turned = pairs * torch.polar(torch.ones_like(angles), angles).unsqueeze(1)
    return torch.view_as_real(turned).flatten(-2)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**16), heads=st.integers(1, 3), half=st.integers(1, 8), tokens=st.integers(1, 5))
def test_scores_and_values_are_those_of_the_checkpoint(seed: int, heads: int, half: int, tokens: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    dim, hidden = 2 * half, 6

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).float()

    x, weight, bias = normal(tokens, hidden), normal(hidden, 3 * heads * dim), normal(3 * heads * dim)
    gammas = [1 + 0.3 * normal(heads * dim) for _ in range(2)]
    angles = normal(tokens, half)

    found = []
    for part, gamma in enumerate(gammas):
        columns = slice(part * heads * dim, (part + 1) * heads * dim)
        rows = x.double() @ weight[:, columns].double() + bias[columns].double()
        rows = rows / (rows.square().mean(dim=1, keepdim=True) + 1e-6).sqrt() * gamma.double()
        found.append(neighbours_turned(rows.view(tokens, heads, dim), angles.double()))
    scores = torch.einsum("ihd,jhd->hij", *found)

    q, k, v = qkv(
        x,
        fused_to_halves(weight, (heads, heads, heads), dim),
        fused_to_halves(bias, (heads, heads, heads), dim),
        *(neighbours_to_halves(gamma, dim) for gamma in gammas),
        angles.cos(),
        angles.sin(),
        heads=(heads, heads, heads),
    )
    ours = torch.einsum("hdi,hdj->hij", q.double(), k.double())
    # Against the sizes of q and k: a score of a few dimensions may cancel to nearly nothing.
    assert float((ours - scores).norm()) <= 1e-6 * float(found[0].norm() * found[1].norm())
    last = x.double() @ weight[:, 2 * heads * dim :].double() + bias[2 * heads * dim :].double()
    expected = last.view(tokens, heads, dim).transpose(0, 1)
    assert float((v - expected).norm()) <= 1e-6 * float(x.norm() * weight.norm() + bias.norm())


def test_even_dimensions_of_each_head_come_first() -> None:
    weight = torch.arange(8).expand(3, 8)
    assert neighbours_to_halves(weight, 4)[0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert torch.equal(neighbours_to_halves(weight.T, 4, axis=0), neighbours_to_halves(weight, 4).T)


@pytest.mark.parametrize("head_dim", [3, 6])
def test_a_head_that_does_not_divide_is_refused(head_dim: int) -> None:
    with pytest.raises(ValueError, match=f"head_dim is {head_dim} and axis -1 has 8"):
        neighbours_to_halves(torch.zeros(8), head_dim)
