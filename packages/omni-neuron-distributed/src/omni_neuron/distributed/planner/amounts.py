"""What a request asks of the machine, phase by phase, in units that a rate turns into seconds."""

from __future__ import annotations

from dataclasses import dataclass

from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.communication import Traffic, traffic
from omni_neuron.distributed.planner.flops import (
    rank_forward_flops,
    text_encoder_flops,
    vae_decode_flops,
    vae_encode_flops,
    vae_rank_share,
)
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.ledger import expert_bytes
from omni_neuron.distributed.planner.links import seconds_per_byte
from omni_neuron.distributed.planner.machines import machine
from omni_neuron.distributed.planner.memory_traffic import MemoryTraffic, memory_traffic
from omni_neuron.distributed.topology import Topology


@dataclass(frozen=True)
class Wire:
    """Seconds on the most loaded link at its nominal speed, and messages in sequence."""

    seconds: float = 0.0
    messages: float = 0.0

    def __add__(self, other: Wire) -> Wire:
        return Wire(self.seconds + other.seconds, self.messages + other.messages)


@dataclass(frozen=True)
class Amounts:
    """One request on the busiest rank.

    ``linear`` and ``attention`` are FLOPs of the denoising loop, ``prompt`` of the text encoder; ``memory``
    is the loop's traffic, ``dequantise`` the part of it that fp8 storage adds. ``wires`` maps encode,
    denoise and decode to their collectives, ``ring`` is what may hide behind attention, of which
    ``ring_cover`` is the part that runs beside an exchange. ``swap`` is seconds from host memory.
    """

    linear: float
    attention: float
    prompt: float
    memory: MemoryTraffic
    dequantise: float
    wires: dict[str, Wire]
    ring: Wire
    ring_cover: float
    images: int
    vae_encode: float
    vae_decode: float
    output_values: float
    swap: float


def amounts(job: Job, choice: Choice, topology: Topology) -> Amounts:
    """Everything a rank of the choice does for one warm request."""
    layout = choice.layout
    forwards = job.rank_forwards(layout.cfg)
    forward = rank_forward_flops(job, layout)
    one, stored_bf16 = memory_traffic(job, choice), memory_traffic(job, _stored_as_bf16(choice))
    wires = {"encode": Wire(), "denoise": Wire(), "decode": Wire()}
    ring = Wire()
    for item in traffic(job, choice):
        wire = _wire(item, choice, topology)
        if item.hides:
            ring += wire
        else:
            phase = {"text encoder": "encode", "video": "decode"}.get(item.name, "denoise")
            wires[phase] += wire
    return Amounts(
        linear=forwards * forward.linear,
        attention=forwards * forward.attention,
        prompt=job.branches * text_encoder_flops(job.model.text_encoder) / choice.text_encoder_ranks,
        memory=MemoryTraffic(forwards * one.linear, forwards * one.attention, forwards * one.elementwise),
        dequantise=forwards * (one.total - stored_bf16.total),
        wires=wires,
        ring=ring,
        ring_cover=(layout.ring - 1) / layout.ring,
        images=int(job.image),
        vae_encode=vae_encode_flops(job, job.encoded_frames) * vae_rank_share(job, layout.vae),
        vae_decode=vae_decode_flops(job) * vae_rank_share(job, layout.vae),
        output_values=job.output_values,
        swap=_swap_seconds(job, choice, topology),
    )


def _stored_as_bf16(choice: Choice) -> Choice:
    return Choice(choice.layout, choice.attention, choice.resident_experts)


def _wire(item: Traffic, choice: Choice, topology: Topology) -> Wire:
    groups = tuple(choice.layout.groups(item.group))
    return Wire(item.sent * seconds_per_byte(topology, groups, item.pattern), item.messages)


def _swap_seconds(job: Job, choice: Choice, topology: Topology) -> float:
    """Every rank loads the other expert in the middle of a request, and the first again for the next one."""
    absent = job.model.experts - choice.resident_experts
    if absent <= 0:
        return 0.0
    shards = choice.layout.world_size * expert_bytes(job, choice)
    return 2 * shards / (machine(topology).load_gb_s * 1e9)
