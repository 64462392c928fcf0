"""What a core's memory holds during encode, denoise and decode, line by line, in GiB.

Three of the lines have no formula outside the compiler: scratch, code and DMA rings. They are the published
figures of one layout, scaled: scratch by the live tensors of a block, DMA rings by the bytes that a forward
moves through memory and links (every transfer needs its descriptor), code not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.communication import BF16, FP32, kv_bytes, traffic
from omni_neuron.distributed.planner.data_files import read_table
from omni_neuron.distributed.planner.flops import local_tokens, vae_rank_share
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.memory_traffic import memory_traffic
from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.distributed.planner.parameters import (
    block_matrices,
    dit_parameters_per_rank,
    text_encoder_parameters,
    vae_parameters,
)
from omni_neuron.distributed.planner.vae_layers import decoder_layers

GIB = 2.0**30
PHASES = ("encode", "denoise", "decode")


@dataclass(frozen=True)
class Ledger:
    """GiB per core. ``resident`` stays through a request; each phase adds its own lines to it."""

    resident: dict[str, float]
    phases: dict[str, dict[str, float]]

    @property
    def peak_phase(self) -> str:
        """The phase that needs most."""
        return max(PHASES, key=lambda phase: sum(self.phases[phase].values()))

    @property
    def lines(self) -> dict[str, float]:
        """All lines at the peak; their sum is ``total``."""
        return {**self.resident, **self.phases[self.peak_phase]}

    @property
    def total(self) -> float:
        """The peak over the phases."""
        return sum(self.lines.values())


def ledger(job: Job, choice: Choice, *, whole_video_gather: bool = False) -> Ledger:
    """The ledger of a choice; ``whole_video_gather`` leaves the gather of pixels in one piece."""
    model, table = job.model, read_table("ledger")
    graphs = table["graphs"]
    text = text_encoder_parameters(model.text_encoder) / choice.text_encoder_ranks
    encoder, decoder = vae_parameters(model.vae)
    resident = {
        "weights": choice.resident_experts * expert_bytes(job, choice) / GIB,
        "text_encoder": text * BF16 / GIB,
        "vae": (decoder + (encoder if model.image_condition or job.image else 0)) * BF16 / GIB,
        "cross_attention_cache": choice.resident_experts * _cross_attention_cache(job, choice) / GIB,
        "code": graphs * table["code_per_graph"],
        "dma_rings": graphs * _dma_bytes(job, choice) * _dma_density(),
    }
    denoise = block_activations(job, choice) / GIB
    decode = _decode_activations(job, choice)
    gather = 0.0
    if choice.layout.vae > 1:
        gather = table["video_gather"] * job.output_values / _anchor()[0].output_values
        gather = gather if whole_video_gather else min(gather, table["video_gather_piece"])
    phases = {
        "encode": {"activations": _encode_activations(job), "scratch": 0.0, "video_gather": 0.0},
        "denoise": {
            "activations": denoise,
            "scratch": denoise * _spill() + _dequantised_block(job, choice) / GIB,
            "video_gather": 0.0,
        },
        "decode": {"activations": decode, "scratch": 0.0, "video_gather": gather},
    }
    return Ledger(resident, phases)


def expert_bytes(job: Job, choice: Choice) -> float:
    """Bytes of one expert on one rank: matrices of the blocks in ``weight_dtype``, the rest in bf16."""
    dit, tp = job.model.dit, choice.layout.tp
    matrices = dit.layers * block_matrices(dit) / tp
    stored = 1 if choice.weight_dtype == "fp8" else BF16
    return matrices * stored + (dit_parameters_per_rank(dit, tp) - matrices) * BF16


def block_activations(job: Job, choice: Choice) -> float:
    """Bytes alive at the fullest point of a block: residual, normed input, output, Q, K, V or FFN."""
    layout, dit = choice.layout, job.model.dit
    hidden = local_tokens(job, layout.cp) * dit.width * BF16
    attention = hidden * (2 + 4 / layout.tp) + kv_transient(job, choice)
    if layout.ulysses > 1:
        attention += 4 * hidden / layout.tp
    feed_forward = hidden * (3 + dit.ffn / dit.width / layout.tp)
    return max(attention, feed_forward)


def kv_transient(job: Job, choice: Choice) -> float:
    """Bytes of keys and values in flight: all of the ring when gathered, two shares when exchanged."""
    ring = choice.layout.ring
    if ring == 1:
        return 0.0
    return (ring if choice.attention == "gather" else 2) * kv_bytes(job, choice)


def _dequantised_block(job: Job, choice: Choice) -> float:
    if choice.weight_dtype == "bf16":
        return 0.0
    return block_matrices(job.model.dit) / choice.layout.tp * BF16


def _cross_attention_cache(job: Job, choice: Choice) -> float:
    dit, prompts = job.model.dit, job.rank_branches(choice.layout.cfg)
    rows = job.model.text_encoder.tokens
    return prompts * 2 * rows * dit.width * dit.layers * BF16 / choice.layout.tp


def _dma_bytes(job: Job, choice: Choice) -> float:
    """Bytes that one forward moves by DMA: through memory and to other ranks."""
    sent = sum(item.sent for item in traffic(job, choice) if item.group in ("tp", "ulysses", "ring"))
    return memory_traffic(job, choice).total + sent / job.rank_forwards(choice.layout.cfg)


def _encode_activations(job: Job) -> float:
    text = job.model.text_encoder
    return text.tokens * (4 * text.width + 2 * text.ffn) * BF16 / GIB


def _decode_activations(job: Job, choice: Choice) -> float:
    """The feature cache, and the largest tensor of a step in fp32 with its bf16 copy, of one rank's patch."""
    share = vae_rank_share(job, choice.layout.vae)
    values = feature_cache_values(job) * BF16 + largest_decode_values(job) * (FP32 + BF16)
    return share * values / GIB


def feature_cache_values(job: Job) -> int:
    """Values that the causal convolutions of the decoder keep: the last two frames of every input."""
    _, rows, columns = job.latent
    layers = (layer for layer in decoder_layers(job.model.vae) if layer.cached)
    return sum(2 * layer.inputs * layer.positions(1, rows, columns) for layer in layers)


def largest_decode_values(job: Job) -> int:
    """Values of the largest tensor of one latent frame's decoding: the up-sampled input of a convolution."""
    _, rows, columns = job.latent
    layers = decoder_layers(job.model.vae)
    return max(layer.inputs * layer.positions(1, rows, columns) << layer.time for layer in layers)


@cache
def _anchor() -> tuple[Job, Choice]:
    """The layout whose lines are published."""
    entry: dict[str, Any] = read_table("ledger")["anchor"]
    model = load_model(entry["model"])
    job = Job(model, entry["height"], entry["width"], entry["num_frames"], model.steps)
    layout = ParallelLayout(entry["tp"], entry["cp"], entry["cfg"], text_encoder="world")
    return job, Choice(layout, "gather", model.experts)


@cache
def _spill() -> float:
    """Scratch beyond the live tensors, per byte of them."""
    published: float = read_table("ledger")["scratch"]
    return published / (block_activations(*_anchor()) / GIB) - 1


@cache
def _dma_density() -> float:
    """GiB of descriptors per byte moved by a forward."""
    published: float = read_table("ledger")["dma_rings_per_graph"]
    return published / _dma_bytes(*_anchor())
