"""Embeddings of patches, time, text and image."""

import pytest
import torch
from torch.nn import functional

from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.embeddings import ConditionEmbedder, PatchEmbedding

CONFIG = WanConfig(
    num_attention_heads=2,
    attention_head_dim=12,
    in_channels=3,
    patch_size=(2, 1, 3),
    text_dim=8,
    freq_dim=32,
    image_dim=5,
    added_kv_proj_dim=24,
)


def filled(module):
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.data = (torch.randn(parameter.shape, generator=generator) * 0.3).to(parameter.dtype)
    return module


@torch.no_grad()
def test_patches_are_a_strided_convolution():
    embedding = filled(PatchEmbedding(CONFIG, dtype=torch.float32, device=None))
    latents = torch.randn(2, 3, 4, 2, 6)
    expected = functional.conv3d(latents, embedding.weight, embedding.bias, stride=CONFIG.patch_size)
    patches = latents.view(2, 3, 2, 2, 2, 1, 2, 3).permute(0, 2, 4, 6, 1, 3, 5, 7).reshape(2, 8, 18)
    torch.testing.assert_close(embedding(patches), expected.flatten(2).transpose(1, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.no_grad()
def test_time_per_token_is_time_per_sample_for_each_token(dtype):
    embedder = filled(ConditionEmbedder(CONFIG, dtype=dtype, device=None))
    timestep = torch.tensor([[0, 500, 999], [7, 7, 123]])
    embedding, modulation = embedder.embed_time(timestep, dtype)
    assert embedding.shape == (2, 3, 24)
    assert modulation.shape == (2, 3, 6, 24)
    assert embedding.dtype == modulation.dtype == dtype
    alone, alone_modulation = embedder.embed_time(timestep.flatten(), dtype)
    assert alone.shape == (6, 1, 24)
    torch.testing.assert_close(alone.view(2, 3, 24), embedding)
    torch.testing.assert_close(alone_modulation.view(2, 3, 6, 24), modulation)


@torch.no_grad()
def test_the_time_perceptron_stays_float32_in_a_bf16_model():
    exact = filled(ConditionEmbedder(CONFIG, dtype=torch.float32, device=None))
    half = filled(ConditionEmbedder(CONFIG, dtype=torch.bfloat16, device=None))
    timestep = torch.tensor([998, 999])
    expected, _ = exact.embed_time(timestep, torch.float32)
    actual, _ = half.embed_time(timestep, torch.bfloat16)
    assert torch.equal(actual, expected.bfloat16())


@torch.no_grad()
def test_image_rows_come_before_the_text():
    embedder = filled(ConditionEmbedder(CONFIG, dtype=torch.float32, device=None))
    text, image = torch.randn(1, 6, 8), torch.randn(1, 4, 5)
    context = embedder.embed_context(text, image)
    assert context.shape == (1, 10, 24)
    assert torch.equal(context[:, 4:], embedder.embed_context(text, None))
    other = embedder.embed_context(text, image + torch.arange(5.0))
    assert torch.equal(other[:, 4:], context[:, 4:])
    assert not torch.allclose(other[:, :4], context[:, :4])
