"""The arithmetic behind one candidate: what it sends, where its seconds go, what its memory holds."""

from __future__ import annotations

from dataclasses import fields

from omni_neuron.distributed.planner.amounts import Wire, amounts
from omni_neuron.distributed.planner.candidate import Candidate
from omni_neuron.distributed.planner.communication import traffic
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.ledger import PHASES, Ledger
from omni_neuron.distributed.planner.links import seconds_per_byte
from omni_neuron.distributed.planner.machines import machine
from omni_neuron.distributed.planner.seconds import (
    Seconds,
    constants,
    kernel_seconds,
    kernels,
    published_seconds,
    wire_seconds,
)
from omni_neuron.distributed.topology import Topology


def anatomy(job: Job, candidate: Candidate, topology: Topology) -> str:
    """Three tables as text; those of links and seconds only where the candidate routes."""
    tables = [_memory(candidate.ledger, topology)]
    if candidate.routable:
        tables = [_sent(job, candidate, topology), _seconds(job, candidate, topology), *tables]
    return "\n\n".join(tables)


def _sent(job: Job, candidate: Candidate, topology: Topology) -> str:
    choice, fitted = candidate.choice, constants()
    lines = [f"{'One rank sends':16}{'over':>13}{'GB':>9}{'messages':>10}{'GB/s nominal':>14}{'s':>7}"]
    for item in traffic(job, choice):
        nominal = seconds_per_byte(topology, tuple(choice.layout.groups(item.group)), item.pattern)
        seconds = wire_seconds(Wire(item.sent * nominal, item.messages), fitted)
        beside = "  beside attention" if item.hides else ""
        lines.append(
            f"{item.name:16}{item.group:>13}{item.sent * 1e-9:9.2f}{item.messages:10.0f}"
            f"{1e-9 / nominal:14.1f}{seconds:7.2f}{beside}"
        )
    return "\n".join([*lines, f"{'in all':29}{candidate.sent_bytes * 1e-9:9.2f}"])


def _seconds(job: Job, candidate: Candidate, topology: Topology) -> str:
    need, core, fitted = amounts(job, candidate.choice, topology), machine(topology), constants()
    columns = published_seconds(need, core, fitted), kernel_seconds(need, core, fitted, kernels())
    lines = [f"{'Seconds':10}{'published':>11}{'kernels':>9}"]
    lines += [
        f"{name:10}{getattr(columns[0], name):11.2f}{getattr(columns[1], name):9.2f}"
        for name in (*(field.name for field in fields(Seconds)), "total")
    ]
    ring = wire_seconds(need.ring, fitted)
    if ring:
        exposed = (column.total - column.ring + ring for column in columns)
        lines.append(f"{'no hiding':10}{next(exposed):11.2f}{next(exposed):9.2f}")
    return "\n".join(lines)


def _memory(book: Ledger, topology: Topology) -> str:
    lines = [f"{f'GB of {topology.hbm_gb_per_core:g}':22}" + "".join(f"{phase:>9}" for phase in PHASES)]
    lines += [f"{name:22}" + f"{value:9.2f}" * len(PHASES) for name, value in book.resident.items()]
    lines += [
        f"{name:22}" + "".join(f"{book.phases[phase][name]:9.2f}" for phase in PHASES)
        for name in book.phases["denoise"]
    ]
    totals = (sum(book.resident.values()) + sum(book.phases[phase].values()) for phase in PHASES)
    return "\n".join([*lines, f"{'in all':22}" + "".join(f"{total:9.2f}" for total in totals)])
