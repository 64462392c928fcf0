"""Configuration of the UMT5 text encoder, as transformers writes it to ``text_encoder/config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.config_file import REMEDY, ConfigFile

# What the encoder computes with; another value would be another model.
_FIXED = {
    "model_type": "umt5",
    "feed_forward_proj": "gated-gelu",
    "dense_act_fn": "gelu_new",
    "is_gated_act": True,
    "is_decoder": False,
}

# Bookkeeping, training, the decoder and the tokenizer.
_INERT = frozenset(
    {
        "architectures",
        "bos_token_id",
        "chunk_size_feed_forward",
        "classifier_dropout",
        "decoder_start_token_id",
        "dropout_rate",
        "dtype",
        "eos_token_id",
        "id2label",
        "initializer_factor",
        "is_encoder_decoder",
        "label2id",
        "num_decoder_layers",
        "output_attentions",
        "output_hidden_states",
        "output_past",
        "pad_token_id",
        "problem_type",
        "return_dict",
        "scalable_attention",
        "tie_word_embeddings",
        "tokenizer_class",
        "torch_dtype",
        "transformers_version",
        "use_cache",
    }
)


@dataclass(frozen=True)
class UMT5Config(ConfigFile):
    """Geometry of the encoder; names and defaults are those of transformers' ``UMT5Config``.

    ``d_kv`` is the width of a head; ``num_heads * d_kv`` need not equal ``d_model``. Relative distances of
    ``relative_attention_max_distance`` tokens and more share a bucket.

    Raises:
        InputError: a field is out of range.
    """

    component = "text encoder"
    inert = _INERT | _FIXED.keys()
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "vocab_size": (1, 2**24),
        "d_kv": (1, 1024),
        "num_layers": (1, 1024),
        "num_heads": (1, 1024),
        "relative_attention_num_buckets": (1, 2**16),
        "layer_norm_epsilon": (1e-20, 1),
    }

    vocab_size: int = 250112
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 1024
    num_layers: int = 8
    num_heads: int = 6
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    layer_norm_epsilon: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        buckets = self.relative_attention_num_buckets
        if buckets % 4:
            raise InputError(
                f"text encoder config relative_attention_num_buckets={buckets} must be a multiple of 4, half "
                f"of each direction is for exact distances; {REMEDY}"
            )
        if self.relative_attention_max_distance <= buckets // 4:
            raise InputError(
                f"text encoder config relative_attention_max_distance={self.relative_attention_max_distance} "
                f"must be above the {buckets // 4} exact distances; {REMEDY}"
            )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """As `ConfigFile.from_dict`.

        Raises:
            InputError: also when a key asks for another architecture.
        """
        for key, only in _FIXED.items():
            if values.get(key, only) != only:
                raise InputError(
                    f"text encoder config {key}={values[key]!r} must be {only!r}, as in UMT5; "
                    "use a Wan2.2 checkpoint."
                )
        return super().from_dict(values)
