"""Reading ``text_encoder/config.json``."""

import json

import pytest

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.umt5_config import UMT5Config

PUBLISHED = {
    "_name_or_path": "umt5",
    "architectures": ["UMT5EncoderModel"],
    "classifier_dropout": 0.0,
    "d_ff": 10240,
    "d_kv": 64,
    "d_model": 4096,
    "decoder_start_token_id": 0,
    "dense_act_fn": "gelu_new",
    "dropout_rate": 0.1,
    "eos_token_id": 1,
    "feed_forward_proj": "gated-gelu",
    "initializer_factor": 1.0,
    "is_encoder_decoder": True,
    "is_gated_act": True,
    "layer_norm_epsilon": 1e-06,
    "model_type": "umt5",
    "num_decoder_layers": 24,
    "num_heads": 64,
    "num_layers": 24,
    "output_past": True,
    "pad_token_id": 0,
    "relative_attention_max_distance": 128,
    "relative_attention_num_buckets": 32,
    "scalable_attention": True,
    "tie_word_embeddings": False,
    "tokenizer_class": "T5Tokenizer",
    "torch_dtype": "bfloat16",
    "transformers_version": "4.48.0",
    "use_cache": True,
    "vocab_size": 256384,
}


def test_the_published_file_is_read(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(PUBLISHED))
    config = UMT5Config.from_json_file(path)
    assert config == UMT5Config(
        vocab_size=256384, d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"feed_forward_proj": "relu"}, "feed_forward_proj='relu' must be 'gated-gelu'"),
        ({"model_type": "t5"}, "model_type='t5' must be 'umt5'"),
        ({"sliding_window": 3}, r"unknown keys \['sliding_window'\]"),
        ({"num_heads": 0}, "num_heads=0 must lie in 1"),
        ({"relative_attention_num_buckets": 6}, "relative_attention_num_buckets=6 must be a multiple of 4"),
        ({"relative_attention_max_distance": 8}, "relative_attention_max_distance=8 must be above the 8"),
    ],
)
def test_another_architecture_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        UMT5Config.from_dict({**PUBLISHED, **change})
