"""Floating-point operations, two per multiply-add, of one DiT forward, one prompt and one VAE pass."""

from __future__ import annotations

import math
from dataclasses import dataclass

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.planner.geometry import Job, TextEncoder
from omni_neuron.distributed.planner.parameters import text_encoder_layer
from omni_neuron.distributed.planner.vae_layers import Layer, decoder_layers, encoder_layers

# Overlap of neighbouring tiles in pixels (a tile of 256 at a stride of 192).
VAE_OVERLAP = 64


@dataclass(frozen=True)
class ForwardFlops:
    """The parts of one DiT forward; ``linear`` sums everything that multiplies by a weight."""

    self_projections: float
    self_attention: float
    cross_projections: float
    cross_attention: float
    ffn: float
    modulation: float = 0.0

    @property
    def attention(self) -> float:
        return self.self_attention + self.cross_attention

    @property
    def linear(self) -> float:
        return self.self_projections + self.cross_projections + self.ffn + self.modulation

    @property
    def total(self) -> float:
        return self.attention + self.linear


def forward_flops(job: Job) -> ForwardFlops:
    """One forward of one expert for one guidance branch, whole model.

    Per block 8 S d^2 + 4 S^2 d for self-attention, 4 S d^2 + 4 T d^2 + 4 S T d for cross-attention over T
    text tokens, 4 S d f for the feed-forward; per-token time embedding adds 2 S (256 d + 7 d^2) once.
    """
    dit, s, t = job.model.dit, job.tokens, job.model.text_encoder.tokens
    d, f, n = dit.width, dit.ffn, dit.layers
    per_token = 2 * s * (dit.freq_dim * d + 7 * d * d) if job.model.per_token_time else 0
    return ForwardFlops(
        self_projections=n * 8 * s * d * d,
        self_attention=n * 4 * s * s * d,
        cross_projections=n * (4 * s * d * d + 4 * t * d * d),
        cross_attention=n * 4 * s * t * d,
        ffn=n * 4 * s * d * f,
        modulation=per_token,
    )


def head_share(heads: int, tp: int, ulysses: int) -> float:
    """Share of all heads on the rank that has most: 1 / (tp u) where they divide evenly, else more."""
    return math.ceil(heads // tp / ulysses) / heads


def local_tokens(job: Job, parts: int) -> int:
    """Tokens of one of ``parts`` ranks, padding included."""
    return math.ceil(job.tokens / parts)


def rank_forward_flops(job: Job, layout: ParallelLayout) -> ForwardFlops:
    """The part of one forward on the busiest rank: tokens by context, matrices by tensor parallelism.

    Self-attention sees the heads that Ulysses leaves a rank and the query tokens of its place in the ring.
    """
    whole, tp = forward_flops(job), layout.tp
    dit, text = job.model.dit, job.model.text_encoder.tokens
    tokens = local_tokens(job, layout.cp) / job.tokens
    queries = local_tokens(job, layout.ring) / job.tokens
    text_projections = dit.layers * 4 * text * dit.width**2
    return ForwardFlops(
        self_projections=whole.self_projections * tokens / tp,
        self_attention=whole.self_attention * queries * head_share(dit.heads, tp, layout.ulysses),
        cross_projections=((whole.cross_projections - text_projections) * tokens + text_projections) / tp,
        cross_attention=whole.cross_attention * tokens / tp,
        ffn=whole.ffn * tokens / tp,
        modulation=whole.modulation * tokens,
    )


def text_encoder_flops(text: TextEncoder) -> float:
    """One prompt of 512 tokens through all layers."""
    s = text.tokens
    matrices = 2 * s * text_encoder_layer(text)
    return text.layers * (matrices + 4 * s * s * text.heads * text.head_dim)


def vae_decode_flops(job: Job) -> float:
    """Latent to clip, without tiling."""
    return _vae_flops(job, decoder_layers(job.model.vae), job.latent[0])


def vae_encode_flops(job: Job, frames: int) -> float:
    """``frames`` pixel frames to latent, without tiling."""
    if frames == 0:
        return 0.0
    latent_frames = (frames - 1) // job.model.vae.temporal_scale + 1
    return _vae_flops(job, encoder_layers(job.model.vae), latent_frames)


def _vae_flops(job: Job, layers: list[Layer], latent_frames: int) -> float:
    _, rows, columns = job.latent
    return sum(layer.flops(latent_frames, rows, columns) for layer in layers)


def vae_grid(job: Job, ranks: int) -> tuple[int, int]:
    """Rows and columns of patches for ``ranks`` ranks, so that patches are nearest to square."""
    pairs = [(rows, ranks // rows) for rows in range(1, ranks + 1) if ranks % rows == 0]
    return min(pairs, key=lambda pair: abs(math.log((job.height / pair[0]) / (job.width / pair[1]))))


def vae_rank_share(job: Job, ranks: int) -> float:
    """Share of the frame that the busiest of ``ranks`` ranks decodes, with its overlap with neighbours."""
    rows, columns = vae_grid(job, ranks)
    height = min(job.height, math.ceil(job.height / rows) + (VAE_OVERLAP if rows > 1 else 0))
    width = min(job.width, math.ceil(job.width / columns) + (VAE_OVERLAP if columns > 1 else 0))
    return height * width / (job.height * job.width)
