"""Whether a checkpoint's tensors are those of its configuration, found out before a worker starts."""

from __future__ import annotations

import torch

from omni_neuron.distributed.errors import CheckpointError
from omni_neuron.distributed.loading.sharded_loader import check_sharded
from omni_neuron.wan22.checkpoint.layout import WanCheckpoint
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.transformer import WanTransformer3DModel
from omni_neuron.wan22.models.umt5 import UMT5Encoder
from omni_neuron.wan22.models.umt5_config import UMT5Config
from omni_neuron.wan22.models.vae import NeuronAutoencoderKLWan
from omni_neuron.wan22.models.vae_config import WanVAEConfig

META = torch.device("meta")


def check_checkpoint(checkpoint: WanCheckpoint) -> None:
    """Compare the headers of every component's files with the models that would be built; read no weight.

    Raises:
        CheckpointError: lists every tensor of every component that is missing, extra or of another shape.
    """
    problems: list[CheckpointError] = []
    for component in (*checkpoint.experts, "text_encoder", "vae"):
        try:
            _check_component(checkpoint, component)
        except CheckpointError as error:
            problems.append(error)
    if problems:
        raise CheckpointError(
            " ".join(str(problem) for problem in problems),
            missing=[name for problem in problems for name in problem.missing],
            extra=[name for problem in problems for name in problem.extra],
            misfit=[name for problem in problems for name in problem.misfit],
        )


def _check_component(checkpoint: WanCheckpoint, component: str) -> None:
    folder = checkpoint.folder / component
    config = folder / "config.json"
    if component == "text_encoder":
        encoder = UMT5Encoder(UMT5Config.from_json_file(config), device=META)
        check_sharded(encoder, folder, **encoder.load_options)
    elif component == "vae":
        vae = NeuronAutoencoderKLWan(WanVAEConfig.from_json_file(config), device=META)
        check_sharded(vae, folder, **vae.load_options)
    else:
        transformer = WanTransformer3DModel(WanConfig.from_json_file(config), device=META)
        check_sharded(transformer, folder, **transformer.load_options)
