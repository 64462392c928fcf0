"""torch.compile of each component, with the compiler arguments that suit it.

The arguments are those that the published plugin for SDK 2.32 passes to neuronx-cc.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from omni_neuron.runtime import envs
from omni_neuron.wan22.models.transformer import WanTransformer3DModel
from omni_neuron.wan22.models.umt5 import UMT5Encoder
from omni_neuron.wan22.models.vae import NeuronAutoencoderKLWan

_COMMON = ["-O1", "--hbm-scratchpad-page-size=2048"]
TRANSFORMER_ARGS = ["--model-type=transformer", "--auto-cast=none", *_COMMON]
DECODER_ARGS = [
    "--model-type=unet-inference",
    "--auto-cast=none",
    "--internal-max-instruction-limit=15000000",
    *_COMMON,
]
WORK_FOLDER = "neuron/compiler"  # below the root of vLLM's caches


def _compiled(function: Callable[..., Any], backend: str, name: str, compiler_args: list[str]) -> Any:
    options: dict[str, Any] = {"model_name": name, "compiler_args": compiler_args}
    root = envs.cache_root()
    if root is not None:
        options["compiler_workdir"] = str(Path(root, WORK_FOLDER, name))
    return torch.compile(
        function, backend=backend, dynamic=False, fullgraph=not envs.debug_mode(), options=options
    )


def compile_transformer(transformer: WanTransformer3DModel, backend: str, name: str) -> None:
    """Compile what an expert does to its tokens.

    Args:
        transformer: changed in place.
        backend: a torch.compile backend.
        name: the component, part of the graph's cache key.
    """
    compiled = _compiled(transformer.forward_tokens, backend, f"wan_{name}", TRANSFORMER_ARGS)
    transformer.forward_tokens = compiled  # type: ignore[method-assign]


def compile_guidance(gather_guidance: Callable[..., Any], backend: str) -> Any:
    """The exchange and combination of both guidance branches as one graph, for every scale."""
    return _compiled(gather_guidance, backend, "wan_guidance", TRANSFORMER_ARGS)


def compile_encoder(encoder: UMT5Encoder, backend: str) -> None:
    """Compile the text encoder, in place."""
    encoder.forward = _compiled(  # type: ignore[method-assign]
        encoder.forward, backend, "umt5_encoder", TRANSFORMER_ARGS
    )


def compile_decoder(vae: NeuronAutoencoderKLWan, backend: str) -> None:
    """Compile the decoding of one latent frame, in place; one graph serves the first and later frames."""
    vae.compile_chunks(lambda chunk: _compiled(chunk, backend, "wan_vae_decoder", DECODER_ARGS))
