import pytest
import torch
from vllm_omni.diffusion.attention.backends.abstract import AttentionMetadata

from omni_neuron.platform.attention_backends import NeuronFlashImpl, NeuronSDPAImpl
from omni_neuron.runtime.errors import InputError

IMPLEMENTATIONS = [NeuronSDPAImpl, NeuronFlashImpl]
HEADS, HEAD_SIZE = 3, 24


def _oracle(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None
) -> torch.Tensor:
    query, key, value = (x.double() for x in (query, key, value))
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) * HEAD_SIZE**-0.5
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), value)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("masked", [False, True])
def test_it_attends_as_the_formula_says(implementation: type[NeuronSDPAImpl], masked: bool) -> None:
    torch.manual_seed(0)
    query = torch.randn(2, 7, HEADS, HEAD_SIZE)
    key, value = torch.randn(2, 2, 11, HEADS, HEAD_SIZE).unbind(0)
    mask = torch.arange(11).expand(2, -1) < 8 if masked else None
    attend = implementation(HEADS, HEAD_SIZE, HEAD_SIZE**-0.5)
    output = attend.forward(query, key, value, AttentionMetadata(attn_mask=mask) if masked else None)
    expected = _oracle(query, key, value, mask)
    assert (output - expected).norm() / expected.norm() < 1e-6


def test_masked_keys_have_no_influence() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 5, HEADS, HEAD_SIZE).unbind(0)
    metadata = AttentionMetadata(attn_mask=torch.tensor([[True, True, True, False, False]]))
    for implementation in IMPLEMENTATIONS:
        attend = implementation(HEADS, HEAD_SIZE, HEAD_SIZE**-0.5)
        before = attend.forward(query, key, value, metadata)
        other = value.clone()
        other[:, 3:] = 1e4
        torch.testing.assert_close(attend.forward(query, key, other, metadata), before, rtol=0, atol=0)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_options_that_would_be_ignored_are_refused(implementation: type[NeuronSDPAImpl]) -> None:
    with pytest.raises(InputError, match="topk"):
        implementation(HEADS, HEAD_SIZE, 1.0, backend_kwargs={"topk": 4})


def test_flash_runs_the_kernel_where_one_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the interpreter the sums have another order than in plain operations, and no other difference."""
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 9, HEADS, HEAD_SIZE), *torch.randn(2, 2, 13, HEADS, HEAD_SIZE)
    attend = NeuronFlashImpl(HEADS, HEAD_SIZE, HEAD_SIZE**-0.5)
    plain = attend.forward(query, key, value)
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    kernel = attend.forward(query, key, value)
    expected = _oracle(query, key, value, None)
    assert (kernel - expected).norm() / expected.norm() < 1e-6
    assert kernel.shape == plain.shape
    assert not torch.equal(kernel, plain)
    monkeypatch.setenv("VLLM_NEURON_DISABLE_NKI_KERNELS", "1")
    assert torch.equal(attend.forward(query, key, value), plain)
