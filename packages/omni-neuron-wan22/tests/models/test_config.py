"""The configuration file: published ones pass, what would change the mathematics is refused."""

import json

import pytest

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.config import WanConfig

T2V_A14B = {
    "_class_name": "WanTransformer3DModel",
    "_diffusers_version": "0.35.0.dev0",
    "added_kv_proj_dim": None,
    "attention_head_dim": 128,
    "cross_attn_norm": True,
    "eps": 1e-06,
    "ffn_dim": 13824,
    "freq_dim": 256,
    "image_dim": None,
    "in_channels": 16,
    "num_attention_heads": 40,
    "num_layers": 40,
    "out_channels": 16,
    "patch_size": [1, 2, 2],
    "pos_embed_seq_len": None,
    "qk_norm": "rms_norm_across_heads",
    "rope_max_seq_len": 1024,
    "text_dim": 4096,
}


def test_the_published_file_is_the_default(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(T2V_A14B))
    config = WanConfig.from_json_file(path)
    assert config == WanConfig()
    assert config.inner_dim == 5120
    assert config.patch_volume == 4


def test_null_means_diffusers_default():
    config = WanConfig.from_dict({"in_channels": 36, "out_channels": None, "qk_norm": None})
    assert config.out_channels == 36
    assert config.qk_norm == "rms_norm_across_heads"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quantization_config": {}}, r"unknown keys \['quantization_config'\]"),
        ({"qk_norm": "rms_norm"}, "qk_norm='rms_norm'"),
        ({"num_layers": 0}, "num_layers=0 must lie in 1"),
        ({"patch_size": [2, 2]}, r"patch_size=\[2, 2\] must have three entries"),
        ({"patch_size": [1, 0, 2]}, r"patch_size\[1\]=0 must lie in 1"),
        ({"attention_head_dim": 13}, "attention_head_dim=13 must be even"),
        ({"attention_head_dim": 4}, "attention_head_dim=4 must lie in 6"),
        ({"freq_dim": 7}, "freq_dim=7 must be even"),
        ({"image_dim": 1280}, "must be given together"),
        ({"image_dim": 1280, "added_kv_proj_dim": 64}, "added_kv_proj_dim=64 must equal"),
        ({"pos_embed_seq_len": 514}, "pos_embed_seq_len=514 needs image_dim"),
    ],
)
def test_what_we_cannot_compute_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        WanConfig.from_dict({**T2V_A14B, **change})
