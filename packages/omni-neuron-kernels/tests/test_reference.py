from pathlib import Path

import pytest

from omni_neuron.kernels.catalogue import KERNELS
from omni_neuron.kernels.reference import COST_MARKS, KERNEL_MARKS, kernel_table, replaced, rewrite

PAGE = Path(__file__).parents[3] / "docs" / "kernels.md"


def between(page: str, marks: tuple[str, str]) -> str:
    return page.partition(marks[0])[2].partition(marks[1])[0]


def test_the_table_of_the_page_is_current() -> None:
    current = between(PAGE.read_text(encoding="utf-8"), KERNEL_MARKS).strip()
    assert current == kernel_table(), "run python -m omni_neuron.kernels.reference docs/kernels.md"


def test_the_page_has_costs_of_every_kernel() -> None:
    rows = between(PAGE.read_text(encoding="utf-8"), COST_MARKS).strip().splitlines()[2:-1]
    assert {row.split()[0] for row in rows} == set(KERNELS), (
        "run python packages/omni-neuron-kernels/benchmarks/kernels.py --page docs/kernels.md"
    )


def test_only_what_stands_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before <a> old <b> after <a>")
    rewrite(page, ("<a>", "<b>"), "new")
    assert page.read_text() == "before <a>\n\nnew\n\n<b> after <a>"


@pytest.mark.parametrize("page", ["<b> <a>", "<a>", ""])
def test_a_page_without_marks_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="the page must hold <a> and <b>"):
        replaced(page, ("<a>", "<b>"), "new")
