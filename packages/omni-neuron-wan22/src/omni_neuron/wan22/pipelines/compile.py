"""torch.compile of each component, with the compiler arguments that suit it.

The arguments are those that the published plugin for SDK 2.32 passes to neuronx-cc.
"""

from __future__ import annotations

from typing import Any

import torch

from omni_neuron.runtime import envs
from omni_neuron.wan22.models.transformer import WanTransformer3DModel
from omni_neuron.wan22.models.umt5 import UMT5Encoder
from omni_neuron.wan22.models.vae import NeuronAutoencoderKLWan

_COMMON = ["--auto-cast=none", "-O1", "--hbm-scratchpad-page-size=2048"]
TRANSFORMER_ARGS = ["--model-type=transformer", *_COMMON]
DECODER_ARGS = ["--model-type=unet-inference", "--internal-max-instruction-limit=15000000", *_COMMON]


def _compiled(function: Any, backend: str, name: str, compiler_args: list[str]) -> Any:
    return torch.compile(
        function,
        backend=backend,
        dynamic=False,
        fullgraph=not envs.debug_mode(),
        options={"model_name": name, "compiler_args": compiler_args},
    )


def compile_transformer(transformer: WanTransformer3DModel, backend: str, name: str) -> None:
    """Compile what an expert does to its tokens; `name` is part of the graph's cache key."""
    transformer.forward_tokens = _compiled(
        transformer.forward_tokens, backend, f"wan_{name}", TRANSFORMER_ARGS
    )


def compile_encoder(encoder: UMT5Encoder, backend: str) -> None:
    """Compile the text encoder."""
    encoder.forward = _compiled(encoder.forward, backend, "umt5_encoder", TRANSFORMER_ARGS)


def compile_decoder(vae: NeuronAutoencoderKLWan, backend: str) -> None:
    """Compile the decoding of one latent frame; the same graph serves the first and later ones."""
    vae.compile_chunks(lambda chunk: _compiled(chunk, backend, "wan_vae_decoder", DECODER_ARGS))
