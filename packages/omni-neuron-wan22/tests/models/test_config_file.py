"""What every configuration file of a component has in common."""

import math
from dataclasses import fields

import pytest

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.umt5_config import UMT5Config
from omni_neuron.wan22.models.vae_config import WanVAEConfig


@pytest.mark.parametrize(
    ("config", "key", "value"),
    [
        (WanConfig, "num_layers", "2"),
        (WanConfig, "num_layers", 2.0),
        (WanConfig, "num_layers", True),
        (WanConfig, "num_layers", None),
        (WanConfig, "cross_attn_norm", 1),
        (WanConfig, "image_dim", "1280"),
        (WanConfig, "patch_size", 2),
        (WanConfig, "patch_size", [1, "2", 2]),
        (UMT5Config, "layer_norm_epsilon", "1e-6"),
        (UMT5Config, "num_heads", [64]),
        (WanVAEConfig, "latents_mean", [None] * 16),
        (WanVAEConfig, "temperal_downsample", [0, 1, 1]),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(config, key, value):
    with pytest.raises(InputError, match=f"{config.component} config {key}=.* must be like the default"):
        config.from_dict({key: value})


NUMBERS = [
    (config, field.name)
    for config in (WanConfig, UMT5Config, WanVAEConfig)
    for field in fields(config)
    if any(kind in str(field.type) for kind in ("int", "float"))
]


@pytest.mark.parametrize("value", [-(10**9), 10**30, math.nan, math.inf])
@pytest.mark.parametrize(("config", "key"), NUMBERS, ids=lambda part: getattr(part, "__name__", part))
def test_a_number_that_no_model_has_is_refused_by_name(config, key, value):
    default = getattr(config, key)
    is_float = "float" in str(config.__annotations__[key])
    if not isinstance(value, int) and not is_float:
        message = "must be like the default"
    elif key == "attn_scales":
        message = "attention inside the stages"
    else:
        message = r"=.* must lie in .*; take the config\.json that belongs to the weights\.$"
    chosen = [value] * (len(default) or 1) if isinstance(default, tuple) else value
    with pytest.raises(InputError, match=message) as error:
        config.from_dict({key: chosen})
    assert f"{config.component} config {key}" in str(error.value)


def test_a_whole_number_is_a_float_and_null_is_left_to_keys_that_may_be_null():
    assert WanVAEConfig.from_dict({"dropout": 0, "patch_size": None}) == WanVAEConfig()
    assert WanConfig.from_dict({"eps": 1, "image_dim": None}).eps == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "must be a JSON object"),
        ('{"num_layers": 0}', "num_layers=0 must lie in 1"),
        ('{"layers": 3}', "unknown keys"),
    ],
)
@pytest.mark.parametrize("config", [WanConfig, UMT5Config])
def test_an_unusable_file_is_named(config, text, reason, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(InputError, match=reason) as error:
        config.from_json_file(path)
    assert str(error.value).startswith(str(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"config\.json is missing"):
        WanVAEConfig.from_json_file(tmp_path / "config.json")
