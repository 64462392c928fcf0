"""The components of a checkpoint, built without memory and then filled with this rank's shards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from transformers import AutoTokenizer

from omni_neuron.distributed.groups import ParallelContext
from omni_neuron.distributed.loading.progress import PlainProgress
from omni_neuron.distributed.loading.sharded_loader import load_sharded
from omni_neuron.wan22.checkpoint.layout import WanCheckpoint, read_checkpoint
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.transformer import WanTransformer3DModel
from omni_neuron.wan22.models.umt5 import UMT5Encoder
from omni_neuron.wan22.models.umt5_config import UMT5Config
from omni_neuron.wan22.models.vae import NeuronAutoencoderKLWan
from omni_neuron.wan22.models.vae_config import WanVAEConfig
from omni_neuron.wan22.pipelines.attention import EngineAttention
from omni_neuron.wan22.pipelines.text_encoder import NeuronTextEncoderWrapper

META = torch.device("meta")


@dataclass
class WanComponents:
    """What a pipeline is made of."""

    checkpoint: WanCheckpoint
    text_encoder: NeuronTextEncoderWrapper
    transformer: WanTransformer3DModel | None
    transformer_2: WanTransformer3DModel | None
    vae: NeuronAutoencoderKLWan


def build_components(od_config: Any, parallel: ParallelContext) -> WanComponents:
    """Build every component on the meta device, so that nothing is allocated before its weights arrive.

    Only the experts that the boundary leaves a use for are built: at 1.0 the low-noise one, at 0.0 the
    high-noise one, which then serves every step.
    """
    checkpoint = read_checkpoint(od_config.model)
    folder, dtype = checkpoint.folder, od_config.dtype
    two, boundary = checkpoint.rules.two_experts, od_config.boundary_ratio

    def expert(name: str) -> WanTransformer3DModel:
        config = WanConfig.from_json_file(folder / name / "config.json")
        return WanTransformer3DModel(config, parallel, EngineAttention, dtype=dtype, device=META)

    encoder = UMT5Encoder(
        UMT5Config.from_json_file(folder / "text_encoder" / "config.json"),
        parallel.text_encoder,
        dtype=dtype,
        device=META,
        reduce_dtype=parallel.tp_reduce_dtype,
    )
    tokenizer = AutoTokenizer.from_pretrained(folder / "tokenizer", local_files_only=True)
    return WanComponents(
        checkpoint=checkpoint,
        text_encoder=NeuronTextEncoderWrapper(tokenizer, encoder),
        transformer=None if two and boundary == 1.0 else expert("transformer"),
        transformer_2=expert("transformer_2") if two and boundary != 0.0 else None,
        vae=NeuronAutoencoderKLWan(
            WanVAEConfig.from_json_file(folder / "vae" / "config.json"), dtype=dtype, device=META
        ),
    )


def load_components(pipeline: Any) -> None:
    """Fill the components of `pipeline` from its checkpoint.

    Raises:
        CheckpointError: lists every tensor that is missing, extra or of another shape.
    """
    folder: Path = pipeline.checkpoint.folder
    for name in ("transformer", "transformer_2"):
        transformer = getattr(pipeline, name)
        if transformer is not None:
            _load(transformer, folder / name)
    _load(pipeline.text_encoder.encoder, folder / "text_encoder")
    _load(pipeline.vae, folder / "vae")
    _require_host_memory(pipeline)


def _load(model: Any, folder: Path) -> None:
    first = not dist.is_initialized() or dist.get_rank() == 0
    progress = PlainProgress(f"Loading {folder.name}") if first else None
    load_sharded(model, folder, progress=progress, **model.load_options)


def _require_host_memory(module: nn.Module) -> None:
    left = [name for name, tensor in module.state_dict().items() if tensor.device == META]
    if left:
        raise RuntimeError(f"no weights arrived for {', '.join(left)}.")
