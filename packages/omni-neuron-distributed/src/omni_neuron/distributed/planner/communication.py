"""What one rank sends during a request: one entry per kind of collective, with bytes and messages.

Bytes are bytes sent per rank: an all-reduce of P bytes over n ranks sends 2 (n - 1) / n P, a gather or an
all-to-all of P bytes in all (n - 1) / n P, a ring of exchanges n - 1 times its own share. Messages are the
steps of the ring algorithms, of which each pays the latency once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.flops import head_share, local_tokens
from omni_neuron.distributed.planner.geometry import Job

Pattern = Literal["ring", "all-to-all", "exchange"]
BF16, FP32 = 2, 4


@dataclass(frozen=True)
class Traffic:
    """All collectives of one kind in one request.

    ``group`` is a group name of the layout, ``pattern`` who sends to whom within a group, ``sent`` bytes and
    ``messages`` are per rank and request. Traffic that ``hides`` travels while attention computes.
    """

    name: str
    group: str
    pattern: Pattern
    sent: float
    messages: float
    hides: bool = False


def all_reduce(payload: float, ranks: int) -> float:
    """Bytes that each of ``ranks`` sends to sum ``payload`` bytes."""
    return 2 * (ranks - 1) / ranks * payload


def share_of_others(payload: float, ranks: int) -> float:
    """Bytes that each rank sends in a gather or all-to-all of ``payload`` bytes: the group's, or its own."""
    return (ranks - 1) / ranks * payload


def traffic(job: Job, choice: Choice) -> list[Traffic]:
    """Everything that a rank of the layout sends for one request, kinds without bytes left out."""
    layout = choice.layout
    forwards = job.rank_forwards(layout.cfg)
    items = [*_blocks(job, choice, forwards), *_outside(job, choice, forwards)]
    return [item for item in items if item.sent]


def kv_bytes(job: Job, choice: Choice) -> float:
    """K and V of one layer that a rank holds before the ring turns, after Ulysses exchanged heads."""
    layout, dit = choice.layout, job.model.dit
    share = head_share(dit.heads, layout.tp, layout.ulysses)
    return 2 * local_tokens(job, layout.ring) * dit.width * share * BF16


def _blocks(job: Job, choice: Choice, forwards: int) -> Iterator[Traffic]:
    layout, dit = choice.layout, job.model.dit
    blocks = forwards * dit.layers
    tokens = local_tokens(job, layout.cp)
    hidden = tokens * dit.width * BF16
    tp, ulysses, ring = layout.tp, layout.ulysses, layout.ring
    steps = 2 * (tp - 1)
    yield Traffic("tp sums", "tp", "ring", 3 * blocks * all_reduce(hidden, tp), 3 * blocks * steps)
    yield Traffic("tp norms", "tp", "ring", 4 * blocks * all_reduce(tokens * FP32, tp), 4 * blocks * steps)
    heads = head_share(dit.heads, tp, ulysses) * ulysses
    exchanged = 4 * share_of_others(hidden * heads, ulysses)
    yield Traffic("heads", "ulysses", "all-to-all", blocks * exchanged, 4 * blocks * (ulysses - 1))
    gathers = choice.attention == "gather"
    yield Traffic(
        "keys and values",
        "ring",
        "ring" if gathers else "exchange",
        blocks * (ring - 1) * kv_bytes(job, choice),
        2 * blocks * (ring - 1),
        hides=not gathers,
    )


def _outside(job: Job, choice: Choice, forwards: int) -> Iterator[Traffic]:
    layout, dit, text = choice.layout, job.model.dit, job.model.text_encoder
    voxels = dit.patch[0] * dit.patch[1] * dit.patch[2]
    noise = job.tokens * voxels * dit.out_channels * BF16
    yield Traffic(
        "tokens", "cp", "ring", forwards * share_of_others(noise, layout.cp), forwards * (layout.cp - 1)
    )
    yield Traffic(
        "guidance", "cfg", "ring", job.steps * (layout.cfg - 1) * noise, job.steps * (layout.cfg - 1)
    )
    ranks, sums = choice.text_encoder_ranks, 2 * text.layers * job.branches
    payload = text.tokens * text.width * BF16
    yield Traffic(
        "text encoder", "text_encoder", "ring", sums * all_reduce(payload, ranks), sums * 2 * (ranks - 1)
    )
    video = job.output_values * FP32
    yield Traffic("video", "vae", "ring", share_of_others(video, layout.vae), layout.vae - 1)
