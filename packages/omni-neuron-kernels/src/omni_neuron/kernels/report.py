"""Kernels, proofs and rooflines as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap

from omni_neuron.kernels.proof import Proof
from omni_neuron.kernels.roofline import Roofline
from omni_neuron.kernels.spec import Case, KernelSpec

PROOF_HEADER = ("case", "LNC", "twin", "bar", "kernel", "bar", "")
ROOFLINE_HEADER = ("case", "LNC", "us", "PE", "bottleneck", "DMA MB", "FLOP/B", "bound", "reached")
PROOF_WIDTHS = (5, 9, 9, 9, 9, 6)
ROOFLINE_WIDTHS = (5, 10, 7, 15, 9, 9, 15, 8)
_LIST_WIDTHS = (22, 34, 30, 44)


def catalogue_table(specs: Iterable[KernelSpec]) -> str:
    """One entry for each kernel: name, summary, roundings, limits."""
    rows = [_cells(("kernel", "what", "rounds", "limits"))]
    for spec in specs:
        cells = (spec.name, spec.summary, ", ".join(spec.roundings), "; ".join(spec.limits))
        rows.append(_cells(cells))
    return "\n".join(rows)


def _cells(cells: Sequence[str]) -> str:
    """A row whose cells are wrapped to the widths of their columns."""
    columns = [
        wrap(cell, width - 2, break_on_hyphens=False) for cell, width in zip(cells, _LIST_WIDTHS, strict=True)
    ]
    height = max(map(len, columns))
    lines = [[column[i] if i < len(column) else "" for column in columns] for i in range(height)]
    return "\n".join(row(line, _LIST_WIDTHS) for line in lines)


def beside_titles(cases: Sequence[Case], widths: Sequence[int]) -> tuple[int, ...]:
    """Widths of columns, behind one that the titles of the cases fit in."""
    return (max(len(case.title) for case in cases) + 2, *widths)


def row(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Cells one after the other, each at least as wide as its column, which ends with two spaces."""
    return "".join(f"{cell:<{width - 2}}  " for cell, width in zip(cells, widths, strict=True)).rstrip()


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns are as wide as their widest cell."""
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    return "\n".join(row(cells, widths) for cells in rows)


def proof_cells(proof: Proof, lnc: int) -> tuple[str, ...]:
    """Errors beside what they may be."""
    errors = (proof.twin_error, proof.twin_bar, proof.kernel_error, proof.kernel_bar)
    return (proof.case.title, str(lnc), *(f"{e:.1e}" for e in errors), "holds" if proof.holds else "FAILS")


def roofline_cells(found: Roofline) -> tuple[str, ...]:
    """A prediction beside its bound; the bound of a kernel without matrix products is the bandwidth."""
    memory_bound = found.case.flops == 0
    return (
        found.case.title,
        str(found.lnc),
        f"{found.makespan_s * 1e6:,.1f}",
        "-" if memory_bound else f"{found.pe_utilisation:.1%}",
        f"{found.bottleneck} {found.bottleneck_share:.0%}",
        f"{found.dma_bytes / 1e6:,.1f}",
        "-" if memory_bound else f"{found.intensity:,.0f}",
        f"{found.bandwidth_bytes_per_s / 1e9:,.0f} GB/s"
        if memory_bound
        else f"{found.bound_flops_per_s / 1e12:,.1f} TFLOP/s",
        f"{found.reached:.1%}",
    )
