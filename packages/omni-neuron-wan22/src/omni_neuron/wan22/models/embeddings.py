"""What enters the blocks beside the video: diffusion time, text and image."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from omni_neuron.distributed.groups import ParallelGroup
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.feed_forward import WanFeedForward
from omni_neuron.wan22.models.norms import FP32LayerNorm

IMAGE_NORM_EPS = 1e-5


class ReplicatedLinear(nn.Linear):
    """A linear layer that every rank holds whole; its values are undefined until they are loaded."""

    def reset_parameters(self) -> None:
        """Leave the memory as it is: drawing values for a large model takes seconds."""


class PatchEmbedding(nn.Module):
    """One token per patch: ``[B, S, Cin*pt*ph*pw] -> [B, S, d]``.

    A convolution whose stride is its kernel is a product with each patch. The weight keeps the
    checkpoint's shape ``[d, Cin, pt, ph, pw]``.
    """

    def __init__(
        self, config: WanConfig, *, dtype: torch.dtype | None, device: torch.device | str | None
    ) -> None:
        super().__init__()
        shape = (config.inner_dim, config.in_channels, *config.patch_size)
        self.weight = nn.Parameter(torch.empty(shape, dtype=dtype, device=device))
        self.bias = nn.Parameter(torch.empty(config.inner_dim, dtype=dtype, device=device))

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        return functional.linear(patches, self.weight.flatten(1), self.bias)


class PerceptronEmbedding(nn.Module):
    """``W2 f(W1 x + b1) + b2`` with diffusers' names ``linear_1`` and ``linear_2``."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        activation: Callable[[torch.Tensor], torch.Tensor],
        *,
        dtype: torch.dtype | None,
        device: torch.device | str | None,
    ) -> None:
        super().__init__()
        self.linear_1 = ReplicatedLinear(in_features, out_features, dtype=dtype, device=device)
        self.linear_2 = ReplicatedLinear(out_features, out_features, dtype=dtype, device=device)
        self.activation = activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.linear_2(self.activation(self.linear_1(x)))
        return out


class ImageEmbedding(nn.Module):
    """CLIP image tokens to the width of the stream: ``[B, n, image_dim] -> [B, n, d]``.

    With a position embedding (first and last frame) the two images of a sample come as ``[2B, n, image_dim]``
    and leave as ``[B, 2n, d]``.
    """

    def __init__(
        self,
        image_dim: int,
        dim: int,
        pos_embed_seq_len: int | None,
        *,
        dtype: torch.dtype | None,
        device: torch.device | str | None,
    ) -> None:
        super().__init__()
        self.norm1 = FP32LayerNorm(image_dim, IMAGE_NORM_EPS, device=device)
        self.ff = WanFeedForward(
            image_dim,
            image_dim,
            dim,
            ParallelGroup.single("tp"),
            approximate="none",
            dtype=dtype,
            device=device,
        )
        self.norm2 = FP32LayerNorm(dim, IMAGE_NORM_EPS, device=device)
        self.pos_embed: nn.Parameter | None = None
        if pos_embed_seq_len is not None:
            positions = torch.empty(1, pos_embed_seq_len, image_dim, dtype=dtype, device=device)
            self.pos_embed = nn.Parameter(positions)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        if self.pos_embed is not None:
            image = image.reshape(-1, 2 * image.shape[1], image.shape[2]) + self.pos_embed
        out: torch.Tensor = self.norm2(self.ff(self.norm1(image)))
        return out


class ConditionEmbedder(nn.Module):
    """Time, text and image embeddings.

    The time perceptron is float32 in every model: a bf16 sinusoid of t = 999 has lost the step.
    """

    def __init__(
        self, config: WanConfig, *, dtype: torch.dtype | None, device: torch.device | str | None
    ) -> None:
        super().__init__()
        dim = config.inner_dim
        half = config.freq_dim // 2
        exponent = -math.log(10000.0) * torch.arange(half, dtype=torch.float32, device="cpu") / half
        # Numbers and not a buffer: no cast and no move of the model may touch them.
        self.frequencies: list[float] = torch.exp(exponent).tolist()
        self.time_embedder = PerceptronEmbedding(
            config.freq_dim, dim, functional.silu, dtype=torch.float32, device=device
        )
        self.time_proj = ReplicatedLinear(dim, 6 * dim, dtype=dtype, device=device)
        self.text_embedder = PerceptronEmbedding(
            config.text_dim, dim, nn.GELU(approximate="tanh"), dtype=dtype, device=device
        )
        self.image_embedder = None
        if config.image_dim is not None:
            self.image_embedder = ImageEmbedding(
                config.image_dim, dim, config.pos_embed_seq_len, dtype=dtype, device=device
            )

    def embed_time(self, timestep: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """Timestep ``[B]`` or ``[B, S/cp]`` -> embedding ``[B, n, d]``, modulation ``[B, n, 6, d]``.

        n is 1 for a timestep per sample and S/cp for one per token; the results have ``dtype``.
        """
        per_token = timestep if timestep.ndim == 2 else timestep.unsqueeze(1)
        frequencies = torch.tensor(self.frequencies, dtype=torch.float32, device=timestep.device)
        angle = per_token.float().unsqueeze(-1) * frequencies
        embedding = self.time_embedder(torch.cat((angle.cos(), angle.sin()), dim=-1)).to(dtype)
        modulation = self.time_proj(functional.silu(embedding)).unflatten(-1, (6, -1))
        return embedding, modulation

    def embed_context(self, text: torch.Tensor, image: torch.Tensor | None) -> torch.Tensor:
        """Text ``[B, 512, text_dim]`` after image ``[B, n, image_dim]``, as ``[B, n + 512, d]``."""
        context: torch.Tensor = self.text_embedder(text)
        if self.image_embedder is None or image is None:
            return context
        return torch.cat((self.image_embedder(image), context), dim=1)
