"""The groups of a layout on the chips of a machine: one panel per dimension, a number per core.

Cores with one number form one group. Chips stand as they do on the torus, whose opposite edges are linked.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence
from html import escape

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.topology import Topology

_NAMES = {
    "tp": "tensor parallel",
    "ulysses": "Ulysses",
    "ring": "ring",
    "cfg": "guidance",
    "vae": "VAE",
}
_CORE, _CHIP_GAP, _MARGIN, _TITLE = 24, 18, 24, 34


def panels(layout: ParallelLayout, topology: Topology) -> dict[str, dict[int, int]]:
    """Group number of every used core, for each dimension with groups of more than one rank."""
    return {
        name: {core: number for number, group in enumerate(layout.groups(name)) for core in group}
        for name in _NAMES
        if len(layout.groups(name)[0]) > 1
    }


def draw_text(layout: ParallelLayout, topology: Topology) -> str:
    """Panels for a terminal: a bracket per chip, a dot for a core that has no rank."""
    width = len(str(layout.world_size - 1))
    drawn = [f"Groups of {layout} on {topology.name}, one number per core, one bracket per chip:"]
    for name, numbers in panels(layout, topology).items():
        first = layout.groups(name)[0]
        drawn.append(
            f"{_NAMES[name]}, {len(layout.groups(name))} groups of {len(first)}; group 0 is {_ranks(first)}"
        )
        drawn += [
            "  " + " ".join(f"[{_chip_text(chip, numbers, topology, width)}]" for chip in row)
            for row in chip_rows(topology)
        ]
    if layout.placement is not None:
        ranks = ",".join(map(str, layout.placement))
        drawn.append(f'Placement, for model_config of a stage file:\n  placement: "{ranks}"')
    return "\n".join(drawn)


def _ranks(group: Sequence[int]) -> str:
    """The group's list, or its ends when it counts up by one."""
    if len(group) > 4 and tuple(group) == tuple(range(group[0], group[0] + len(group))):
        return f"{group[0]} to {group[-1]}"
    return str(list(group))


def chip_rows(topology: Topology) -> list[list[int]]:
    """Chips as rows of the torus, the last axis across; planes of a third axis follow each other."""
    columns = topology.shape[-1] if len(topology.shape) > 1 else min(topology.shape[0], 4)
    return [
        list(range(start, min(start + columns, topology.chips)))
        for start in range(0, topology.chips, columns)
    ]


def _chip_text(chip: int, numbers: dict[int, int], topology: Topology, width: int) -> str:
    cores = range(chip * topology.cores_per_chip, (chip + 1) * topology.cores_per_chip)
    return " ".join(f"{numbers.get(core, '.'):>{width}}" for core in cores)


def draw_svg(layout: ParallelLayout, topology: Topology) -> str:
    """The same panels as one SVG document, a colour per group."""
    rows = chip_rows(topology)
    across = math.ceil(math.sqrt(topology.cores_per_chip))
    chip = across * _CORE
    pitch = chip + _CHIP_GAP
    panel_width = len(rows[0]) * pitch - _CHIP_GAP + 2 * _MARGIN
    drawn = panels(layout, topology)
    height = _TITLE * 2 + len(rows) * pitch - _CHIP_GAP + _MARGIN
    body = [f'<text x="{_MARGIN}" y="22" class="title">{escape(f"{layout} on {topology.name}")}</text>']
    for index, (name, numbers) in enumerate(drawn.items()):
        left, top = index * panel_width + _MARGIN, 2 * _TITLE
        count, size = len(layout.groups(name)), len(layout.groups(name)[0])
        body.append(
            f'<text x="{left}" y="{top - 16}">{escape(_NAMES[name])}: {count} groups of {size}</text>'
        )
        body += _links(rows, left, top, pitch, chip)
        for y, row in enumerate(rows):
            for x, number in enumerate(row):
                place = left + x * pitch, top + y * pitch
                body += _chip_svg(number, numbers, topology, place, across, count)
    width = max(1, len(drawn)) * panel_width + _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img">',
            "<style>text{font:12px sans-serif;fill:#222}.title{font-weight:bold}.core{font-size:10px;"
            "text-anchor:middle}line{stroke:#999}rect{stroke:#444}</style>",
            f'<rect width="{width}" height="{height}" fill="white" stroke="none"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def _links(rows: Sequence[Sequence[int]], left: int, top: int, pitch: int, chip: int) -> list[str]:
    """Lines along rows and columns, longer than the grid by what the wrap-around links stick out."""
    half, stub = chip // 2, _CHIP_GAP // 2
    right = left + (len(rows[0]) - 1) * pitch + chip + stub
    bottom = top + (len(rows) - 1) * pitch + chip + stub
    lines = [
        f'<line x1="{left - stub}" y1="{top + y * pitch + half}" x2="{right}" y2="{top + y * pitch + half}"/>'
        for y in range(len(rows))
    ]
    columns = (left + x * pitch + half for x in range(len(rows[0])))
    return lines + [f'<line x1="{x}" y1="{top - stub}" x2="{x}" y2="{bottom}"/>' for x in columns]


def _chip_svg(
    chip: int, numbers: dict[int, int], topology: Topology, place: tuple[int, int], across: int, count: int
) -> list[str]:
    shapes = []
    for offset in range(topology.cores_per_chip):
        core = chip * topology.cores_per_chip + offset
        x, y = place[0] + offset % across * _CORE, place[1] + offset // across * _CORE
        number = numbers.get(core)
        colour = "white" if number is None else _colour(number, count)
        shapes.append(f'<rect x="{x}" y="{y}" width="{_CORE}" height="{_CORE}" fill="{colour}"/>')
        label = "" if number is None else str(number)
        shapes.append(f'<text class="core" x="{x + _CORE // 2}" y="{y + _CORE // 2 + 4}">{label}</text>')
    return shapes


def _colour(number: int, count: int) -> str:
    """Hues around the circle, light and dark in turn so that neighbours differ."""
    red, green, blue = colorsys.hls_to_rgb(number / count, 0.72 if number % 2 else 0.86, 0.75)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
