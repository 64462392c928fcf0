"""Reading ``vae/config.json``."""

import json

import pytest

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.vae_config import WanVAEConfig

PUBLISHED_22 = {
    "_class_name": "AutoencoderKLWan",
    "_diffusers_version": "0.35.0.dev0",
    "attn_scales": [],
    "base_dim": 160,
    "clip_output": False,
    "decoder_base_dim": 256,
    "dim_mult": [1, 2, 4, 4],
    "dropout": 0.0,
    "in_channels": 12,
    "is_residual": True,
    "latents_mean": [0.0] * 48,
    "latents_std": [1.0] * 48,
    "num_res_blocks": 2,
    "out_channels": 12,
    "patch_size": 2,
    "scale_factor_spatial": 16,
    "scale_factor_temporal": 4,
    "temperal_downsample": [False, True, True],
    "z_dim": 48,
}


def test_the_published_file_of_the_5b_model_is_read(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(PUBLISHED_22))
    config = WanVAEConfig.from_json_file(path)
    assert config.decoder_dims == (1024, 1024, 1024, 512, 256)
    assert config.temporal_upsample == (True, True, False)
    assert config.is_residual
    assert (config.patch_size, config.z_dim, config.scale_factor_spatial) == (2, 48, 16)


def test_the_defaults_are_the_published_2_1_vae():
    config = WanVAEConfig.from_dict({"_class_name": "AutoencoderKLWan", "decoder_base_dim": None})
    assert config == WanVAEConfig()
    assert config.decoder_dims == (384, 384, 384, 192, 96)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attn_scales": [0.5]}, "attn_scales=.0.5.: attention inside the stages is not supported"),
        ({"temperal_downsample": [True]}, "must have one entry less than dim_mult"),
        ({"latents_std": [1.0]}, "latents_std has 1 entries but must have z_dim=48"),
        ({"out_channels": 6}, "out_channels=6 must be a multiple of patch_size..2=4"),
        ({"scale_factor_spatial": 8}, "scale_factor_spatial=8 but the stages give 16"),
        ({"scale_factor_temporal": 8}, "scale_factor_temporal=8 but the stages give 4"),
        ({"quantise": True}, r"unknown keys \['quantise'\]"),
    ],
)
def test_contradictions_and_unknown_keys_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        WanVAEConfig.from_dict({**PUBLISHED_22, **change})
