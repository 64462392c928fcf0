"""The generated parts of docs/kernels.md: `python -m omni_neuron.kernels.reference PAGE` writes the first.

The table of kernels comes from the catalogue. The costs come from the benchmark, which takes minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from omni_neuron.kernels.catalogue import KERNELS

KERNEL_MARKS = ("<!-- kernels: generated -->", "<!-- kernels: end -->")
COST_MARKS = ("<!-- costs: generated -->", "<!-- costs: end -->")


def kernel_table() -> str:
    """What `omni-neuron kernels ls` shows, as a table of Markdown."""
    rows = ["| kernel | what | rounds | limits |", "|---|---|---|---|"]
    for spec in KERNELS.values():
        cells = (f"`{spec.name}`", spec.summary, ", ".join(spec.roundings), "; ".join(spec.limits))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def replaced(page: str, marks: tuple[str, str], text: str) -> str:
    """The page with what stands between two marks replaced.

    Raises:
        ValueError: the page lacks the marks.
    """
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"the page must hold {marks[0]} and {marks[1]}.")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def rewrite(path: Path, marks: tuple[str, str], text: str) -> None:
    """Replace what stands between two marks of a file."""
    path.write_text(replaced(path.read_text(encoding="utf-8"), marks, text), encoding="utf-8")


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]), KERNEL_MARKS, kernel_table())
