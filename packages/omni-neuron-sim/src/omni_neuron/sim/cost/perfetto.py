"""Timelines as JSON for Perfetto and Chrome's trace viewer: a process per core, a row per engine."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omni_neuron.sim.cost.schedule import ENGINES, Slot, Timeline


def write_trace(path: str | Path, timelines: Sequence[Timeline]) -> None:
    """Write all cores; times are microseconds."""
    events: list[dict[str, Any]] = []
    for process, timeline in enumerate(timelines):
        name = f"rank {timeline.rank} core {timeline.core}"
        events.append({"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}})
        for row, engine in enumerate(ENGINES):
            events.append(
                {"ph": "M", "pid": process, "tid": row, "name": "thread_name", "args": {"name": engine}}
            )
        events.extend(_slot(process, slot) for slot in timeline.slots)
    Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))


def _slot(process: int, slot: Slot) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": process,
        "tid": ENGINES.index(slot.engine),
        "name": slot.event.opcode,
        "ts": slot.start_s * 1e6,
        "dur": slot.busy_s * 1e6,
        "args": {"line": str(slot.event.where), "ready_us": slot.finish_s * 1e6},
    }
