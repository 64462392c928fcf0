"""Every component as one graph in bf16, on a device where there is one, by the three-way rule."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from omni_neuron.runtime.accuracy import assert_three_way
from omni_neuron.runtime.testing import run_on_device
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.transformer import WanTransformer3DModel
from omni_neuron.wan22.models.umt5 import UMT5Encoder
from omni_neuron.wan22.models.umt5_config import UMT5Config
from omni_neuron.wan22.models.vae import NeuronAutoencoderKLWan
from omni_neuron.wan22.models.vae_config import WanVAEConfig

pytestmark = pytest.mark.hardware

Result = Callable[[nn.Module, Callable[..., object]], Tensor]


def _filled(module: nn.Module) -> nn.Module:
    """Weights that keep activations near one, away from their initial values."""
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        fan_in = max(parameter[0].numel() if parameter.dim() > 1 else 1, 1)
        noise = torch.randn(parameter.shape, generator=generator) * fan_in**-0.5
        parameter.data = (noise if parameter.dim() > 1 else 1 + 0.2 * noise).to(parameter.dtype)
    return module


def _transformer(dtype: torch.dtype) -> nn.Module:
    config = WanConfig(num_attention_heads=4, attention_head_dim=32, ffn_dim=256, num_layers=2, text_dim=64)
    return WanTransformer3DModel(config, dtype=dtype)


def _denoise(model: nn.Module, call: Callable[..., object]) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    latents = torch.randn(1, 16, 3, 8, 8, generator=generator).to(model.dtype)
    text = torch.randn(1, 20, 64, generator=generator).to(model.dtype)
    return call(model, latents, torch.tensor([500]), text)


def _encoder(dtype: torch.dtype) -> nn.Module:
    return UMT5Encoder(
        UMT5Config(vocab_size=96, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4), dtype=dtype
    )


def _encode(model: nn.Module, call: Callable[..., object]) -> Tensor:
    ids = torch.randint(2, 96, (1, 24), generator=torch.Generator().manual_seed(1))
    return call(model, ids, (torch.arange(24) < 17).long().unsqueeze(0))


def _decoder(dtype: torch.dtype) -> nn.Module:
    return NeuronAutoencoderKLWan(WanVAEConfig(base_dim=8), dtype=dtype)


def _decode(model: nn.Module, call: Callable[..., object]) -> Tensor:
    z = torch.randn(1, 16, 1, 4, 4, generator=torch.Generator().manual_seed(1)).to(model.dtype)
    frames, _ = call(model.decode_chunk, z, torch.tensor(False), tuple(model.allocate_caches(z)))
    return frames


@pytest.mark.parametrize(
    ("build", "result"),
    [(_transformer, _denoise), (_encoder, _encode), (_decoder, _decode)],
    ids=["transformer", "text encoder", "decoder"],
)
def test_the_device_errs_as_bf16_does(build: Callable[[torch.dtype], nn.Module], result: Result) -> None:
    def eager(function: Callable[..., object], *args: object) -> object:
        return function(*args)

    with torch.no_grad():
        exact = _filled(build(torch.float32))
        rounded = build(torch.bfloat16)
        rounded.load_state_dict(exact.state_dict())
        baseline, expected = result(exact, eager), result(rounded, eager)
        actual = result(rounded, run_on_device)
    assert_three_way(baseline, expected, actual)
