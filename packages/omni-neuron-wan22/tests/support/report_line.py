"""The line of JSON that `omni-neuron generate --json` prints."""

from __future__ import annotations

import json
from typing import Any

KEYS = [
    "video",
    "contact_sheet",
    "latents",
    "layout",
    "dtype",
    "seed",
    "timings_s",
    "latents_sha256",
    "peak_rss_anon_mib",
]
STAGES = ["startup", "text_encode", "denoise", "vae_decode", "write"]


def report_of(stdout: str) -> dict[str, Any]:
    """The report, which must be the whole of standard output and hold what it is defined to hold."""
    assert stdout.endswith("\n")
    (line,) = stdout.splitlines()
    report: dict[str, Any] = json.loads(line)
    assert list(report) == KEYS
    timings = report["timings_s"]
    assert list(timings) == [*STAGES, "total"]
    assert all(isinstance(seconds, float) and seconds > 0 for seconds in timings.values())
    assert sum(timings[stage] for stage in STAGES) <= timings["total"] + 0.01
    layout = report["layout"]
    assert list(layout) == ["tp", "cp", "cfg"]
    world = layout["tp"] * layout["cp"] * layout["cfg"]
    assert len(report["latents_sha256"]) == len(report["peak_rss_anon_mib"]) == world
    assert min(report["peak_rss_anon_mib"]) > 0
    return report
