from dataclasses import replace

import pytest
import torch

from omni_neuron.kernels.catalogue import KERNELS
from omni_neuron.kernels.proof import Proof
from omni_neuron.kernels.report import (
    PROOF_HEADER,
    PROOF_WIDTHS,
    ROOFLINE_HEADER,
    ROOFLINE_WIDTHS,
    aligned,
    beside_titles,
    catalogue_table,
    proof_cells,
    roofline_cells,
    row,
)
from omni_neuron.kernels.roofline import Roofline
from omni_neuron.kernels.spec import Case

CASE = Case("9 tokens", ((torch.zeros(1),),), flops=4_000_000)
FOUND = Roofline(
    case=CASE,
    lnc=2,
    makespan_s=1234.56e-6,
    pe_utilisation=0.25,
    bottleneck="dma",
    bottleneck_share=0.9,
    dma_bytes=2_000_000,
    peak_flops_per_s=8e12,
    bandwidth_bytes_per_s=2e9,
)


def test_errors_stand_beside_their_bars() -> None:
    cells = proof_cells(Proof(CASE, 1e-3, 2e-3, 3e-4, 4e-4), 2)
    assert cells == ("9 tokens", "2", "1.0e-03", "2.0e-03", "3.0e-04", "4.0e-04", "holds")
    assert proof_cells(Proof(CASE, 3e-3, 2e-3, 3e-4, 4e-4), 2)[-1] == "FAILS"
    assert proof_cells(Proof(CASE, 1e-3, 2e-3, 5e-4, 4e-4), 2)[-1] == "FAILS"
    assert len(cells) == len(PROOF_HEADER) == len(PROOF_WIDTHS) + 1


def test_a_prediction_stands_beside_its_bound() -> None:
    cells = roofline_cells(FOUND)
    assert cells[:5] == ("9 tokens", "2", "1,234.6", "25.0%", "dma 90%")
    assert cells[5:] == ("2.0", "2", "0.0 TFLOP/s", "81.0%")
    assert len(cells) == len(ROOFLINE_HEADER) == len(ROOFLINE_WIDTHS) + 1
    memory_bound = roofline_cells(replace(FOUND, case=replace(CASE, flops=0)))
    assert memory_bound[3:8] == ("-", "dma 90%", "2.0", "-", "2 GB/s")


@pytest.mark.parametrize("title", ["x", "x" * 90])
def test_cells_keep_apart(title: str) -> None:
    widths = beside_titles([CASE, replace(CASE, title=title)], PROOF_WIDTHS)
    assert widths[0] == max(len(title), len("9 tokens")) + 2
    assert row((title, *"abcdef"), widths).split() == [title, *"abcdef"]
    assert row(("much too wide", "b"), (4, 9)) == "much too wide  b"


def test_a_table_is_as_wide_as_its_widest_cells() -> None:
    assert aligned([("a", "bcd", "e"), ("fghi", "j", "k")]) == "a     bcd  e\nfghi  j    k"


def test_every_word_of_the_catalogue_is_in_its_table() -> None:
    table = catalogue_table(KERNELS.values())
    for spec in KERNELS.values():
        for said in (spec.name, spec.summary, *spec.roundings, *spec.limits):
            assert all(word in table for word in said.split())
