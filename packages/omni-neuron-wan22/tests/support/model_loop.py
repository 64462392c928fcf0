"""A whole request over the models alone, on one rank: no engine, no pipeline class, no process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import nn
from video_cases import Case

from omni_neuron.distributed.cfg_parallel import combine_guidance
from omni_neuron.distributed.loading.sharded_loader import load_sharded
from omni_neuron.wan22.models.config import NUM_TRAIN_TIMESTEPS, TEXT_LENGTH, WanConfig
from omni_neuron.wan22.models.solver import (
    clean_sample,
    correct,
    flow_schedule,
    order_at,
    predict,
)
from omni_neuron.wan22.models.transformer import WanTransformer3DModel
from omni_neuron.wan22.models.umt5 import UMT5Encoder
from omni_neuron.wan22.models.umt5_config import UMT5Config

COMPRESSION = (4, 8, 8)  # of the VAE along time, height and width


class ModelLoop:
    """Text encoder, two experts and solver of a checkpoint, in fp32."""

    def __init__(self, folder: Path) -> None:
        self.boundary_ratio: float = json.loads((folder / "model_index.json").read_text())["boundary_ratio"]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer" / "tokenizer.json"))
        self.text_encoder = UMT5Encoder(UMT5Config.from_json_file(folder / "text_encoder" / "config.json"))
        load_sharded(self.text_encoder, folder / "text_encoder", **self.text_encoder.load_options)
        self.transformer = _expert(folder / "transformer")
        self.transformer_2 = _expert(folder / "transformer_2")

    def model(self, component: str) -> nn.Module:
        """A model by the name of its folder in the checkpoint."""
        model = getattr(self, component)
        assert isinstance(model, nn.Module)
        return model

    def tensors(self, component: str) -> dict[str, torch.Tensor]:
        """Every tensor by its checkpoint key, as a view of the model's memory: joint projections in parts."""
        model = self.model(component)
        joint = model.key_map() if isinstance(model, WanTransformer3DModel) else {}
        views: dict[str, torch.Tensor] = {}
        for name, parameter in model.named_parameters():
            keys: Sequence[str] = joint.get(name, (name,))
            views |= zip(keys, parameter.data.chunk(len(keys)), strict=True)
        return views

    @torch.inference_mode()
    def encode(self, prompt: str) -> torch.Tensor:
        """``[1, 512, text_dim]``."""
        ids = self.tokenizer.encode(prompt).ids
        padding = [0] * (TEXT_LENGTH - len(ids))
        mask = [1] * len(ids) + padding
        out: torch.Tensor = self.text_encoder(torch.tensor([ids + padding]), torch.tensor([mask]))
        return out

    def latents(self, case: Case) -> torch.Tensor:
        """Final latents ``[1, C, T, h, w]`` of a request."""
        return self.denoise(case, self.encode(case.prompt), self.encode(case.negative_prompt or ""))

    @torch.inference_mode()
    def denoise(self, case: Case, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
        """Final latents ``[1, C, T, h, w]`` from embeddings ``[1, 512, text_dim]``."""
        sigmas, timesteps = flow_schedule(case.steps, case.flow_shift)
        sample = _noise(case, self.transformer.config.in_channels)
        estimates: list[torch.Tensor] = []
        before, order = sample, 0
        for index, timestep in enumerate(timesteps):
            velocity = self._velocity(case, sample, timestep, positive, negative)
            estimate = clean_sample(sample, velocity, sigmas[index])
            if index > 0:
                sample = correct(before, estimates, estimate, sigmas, index, order)
            estimates.append(estimate)
            before, order = sample, order_at(index, case.steps)
            sample = predict(sample, estimates, sigmas, index, order)
        return sample

    def _velocity(
        self,
        case: Case,
        sample: torch.Tensor,
        timestep: torch.Tensor,
        positive: torch.Tensor,
        negative: torch.Tensor,
    ) -> torch.Tensor:
        """Guided by the expert of this noise level, when its guidance is above 1."""
        ratio = self.boundary_ratio if case.boundary_ratio is None else case.boundary_ratio
        if timestep >= ratio * NUM_TRAIN_TIMESTEPS:
            expert, scale = self.transformer, case.guidance_scale
        else:
            second = case.guidance_scale_2
            expert, scale = self.transformer_2, case.guidance_scale if second is None else second
        velocity: torch.Tensor = expert(sample, timestep[None], positive)
        if scale <= 1:
            return velocity
        return combine_guidance(velocity, expert(sample, timestep[None], negative), scale)


def _expert(folder: Path) -> WanTransformer3DModel:
    model = WanTransformer3DModel(WanConfig.from_json_file(folder / "config.json"))
    load_sharded(model, folder, **model.load_options)
    return model


def _noise(case: Case, channels: int) -> torch.Tensor:
    time, height, width = COMPRESSION
    shape = (1, channels, (case.num_frames - 1) // time + 1, case.height // height, case.width // width)
    return torch.randn(shape, generator=torch.Generator().manual_seed(case.seed), dtype=torch.float32)
