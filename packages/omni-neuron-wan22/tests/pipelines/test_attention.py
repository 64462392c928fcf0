from typing import Any

import pytest
import torch
from torch import nn
from vllm_omni.diffusion.attention.layer import Attention
from vllm_omni.diffusion.config import set_current_diffusion_config
from vllm_omni.diffusion.data import AttentionConfig, OmniDiffusionConfig

from omni_neuron.wan22.models.attention import sdpa_attention
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.transformer import WanTransformer3DModel
from omni_neuron.wan22.pipelines.attention import EngineAttention

HEADS, HEAD_DIM = 4, 12
WITH_IMAGES = {
    "num_layers": 2,
    "num_attention_heads": HEADS,
    "attention_head_dim": HEAD_DIM,
    "ffn_dim": 32,
    "text_dim": 16,
    "freq_dim": 16,
    "image_dim": 20,
    "added_kv_proj_dim": HEADS * HEAD_DIM,
}
SDPA, FLASH = "NeuronSDPAImpl", "NeuronFlashImpl"


@pytest.fixture(scope="module", autouse=True)
def world(make_worker: Any) -> Any:
    return make_worker(skip_load_model=True)


def _config(**attention: Any) -> OmniDiffusionConfig:
    return OmniDiffusionConfig(
        model=None, model_class_name="WanPipeline", diffusion_attention_config=AttentionConfig(**attention)
    )


def _sites(model: nn.Module) -> dict[str, str]:
    """Implementation by role; every layer must agree."""
    found: dict[str, set[str]] = {}
    for module in model.modules():
        if isinstance(module, Attention):
            found.setdefault(module.role, set()).add(type(module.attention).__name__)
    assert all(len(names) == 1 for names in found.values())
    return {role: names.pop() for role, names in found.items()}


def _transformer(**attention: Any) -> nn.Module:
    with set_current_diffusion_config(_config(**attention)):
        return WanTransformer3DModel(
            WanConfig.from_dict(WITH_IMAGES), attention=EngineAttention, device=torch.device("meta")
        )


@pytest.mark.parametrize(
    ("attention", "sites"),
    [
        ({}, {"self": SDPA, "cross": SDPA, "cross_image": SDPA}),
        ({"default": "FLASH_ATTN"}, {"self": FLASH, "cross": FLASH, "cross_image": FLASH}),
        ({"per_role": {"self": "FLASH_ATTN"}}, {"self": FLASH, "cross": SDPA, "cross_image": SDPA}),
        # The image branch has no setting of its own here: its category is "cross".
        ({"per_role": {"cross": "FLASH_ATTN"}}, {"self": SDPA, "cross": FLASH, "cross_image": FLASH}),
        ({"per_role": {"cross_image": "FLASH_ATTN"}}, {"self": SDPA, "cross": SDPA, "cross_image": FLASH}),
        (
            {"default": "FLASH_ATTN", "per_role": {"cross": "TORCH_SDPA", "cross_image": "FLASH_ATTN"}},
            {"self": FLASH, "cross": SDPA, "cross_image": FLASH},
        ),
    ],
    ids=["nothing", "default", "self", "category", "image only", "all three"],
)
def test_every_site_gets_the_backend_of_its_role_category_or_default(
    attention: dict[str, Any], sites: dict[str, str]
) -> None:
    assert _sites(_transformer(**attention)) == sites


def test_the_variable_reaches_every_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIFFUSION_ATTENTION_BACKEND", "FLASH_ATTN")
    assert set(_sites(_transformer()).values()) == {FLASH}


@pytest.mark.parametrize("backend", ["TORCH_SDPA", "FLASH_ATTN"])
@pytest.mark.parametrize("masked", [False, True])
def test_it_computes_what_the_models_own_attention_does(backend: str, masked: bool) -> None:
    torch.manual_seed(0)
    query = torch.randn(2, 5, HEADS, HEAD_DIM)
    key, value = torch.randn(2, 2, 9, HEADS, HEAD_DIM).unbind(0)
    mask = torch.arange(9).expand(2, -1) < 6 if masked else None
    with set_current_diffusion_config(_config(default=backend)):
        attend = EngineAttention("self", HEADS, HEAD_DIM)
    expected = sdpa_attention("self", HEADS, HEAD_DIM)(query, key, value, mask)
    output = attend(query, key, value, mask)
    assert (output - expected).norm() / expected.norm() <= 1e-6


def test_it_leaves_sequence_parallelism_to_the_model() -> None:
    with set_current_diffusion_config(_config()):
        attend = EngineAttention("self", HEADS, HEAD_DIM)
    assert attend.attention.skip_sequence_parallel
    assert list(attend.parameters()) == []


def test_a_head_that_does_not_fit_the_device_is_refused() -> None:
    with set_current_diffusion_config(_config()), pytest.raises(ValueError, match="head_size 256"):
        EngineAttention("self", HEADS, 256)
