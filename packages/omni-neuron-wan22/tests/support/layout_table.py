"""The table of every request in every layout, and one line for each engine."""

from __future__ import annotations

import io
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import Console
from rich.table import Table

WIDTH = 120


@dataclass(frozen=True)
class Distance:
    """How far one request's latents are from the reference.

    `value` is the relative L2 in fp32, and in bf16 the ratio to the reference's own error.
    """

    case: str
    value: float
    seconds: float


@dataclass
class EngineRow:
    """One engine or one run of the command."""

    layout: str
    dtype: str
    what: str
    wall_s: float
    startup_s: float
    peak_rss_anon_mib: float
    distances: list[Distance] = field(default_factory=list)


def render(rows: Sequence[EngineRow]) -> str:
    """Both tables as text."""
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    console.print(_requests(rows))
    console.print(_engines(rows))
    text = console.file
    assert isinstance(text, io.StringIO)
    return text.getvalue()


def _requests(rows: Sequence[EngineRow]) -> Table:
    table = _table("Requests: relative L2 from diffusers in fp32; in bf16 over diffusers' own")
    for name in ("layout", "dtype", "case"):
        table.add_column(name, no_wrap=True)
    for name in ("relative L2", "ratio", "wall time [s]"):
        table.add_column(name, justify="right")
    for row in rows:
        for distance in row.distances:
            values = (
                [f"{distance.value:.2e}", ""] if row.dtype == "float32" else ["", f"{distance.value:.3f}"]
            )
            table.add_row(row.layout, row.dtype, distance.case, *values, f"{distance.seconds:.2f}")
    return table


def _engines(rows: Sequence[EngineRow]) -> Table:
    table = _table("Engines: each serves all of its requests; the command serves one")
    for name in ("layout", "dtype", "run"):
        table.add_column(name, no_wrap=True)
    for name in ("median request", "worst", "start-up [s]", "wall time [s]", "peak rank [MiB]"):
        table.add_column(name, justify="right")
    for row in rows:
        values = [distance.value for distance in row.distances]
        shown = ["", ""]
        if values:
            form = ".2e" if row.dtype == "float32" else ".3f"
            shown = [format(statistics.median(values), form), format(max(values), form)]
        seconds = [f"{row.startup_s:.1f}", f"{row.wall_s:.1f}"]
        table.add_row(row.layout, row.dtype, row.what, *shown, *seconds, f"{row.peak_rss_anon_mib:.0f}")
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
