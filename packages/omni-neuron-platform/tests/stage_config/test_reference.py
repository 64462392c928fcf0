from __future__ import annotations

from pathlib import Path

import pytest

from omni_neuron.platform.stage_config.reference import tables, updated
from omni_neuron.platform.stage_config.table import TABLE

PAGE = Path(__file__).parents[4] / "docs" / "stage-configuration.md"


def test_the_page_is_current():
    page = PAGE.read_text()
    assert page == updated(page), f"run python -m omni_neuron.platform.stage_config.reference {PAGE.name}"


def test_every_place_is_in_the_tables():
    text = tables()
    for entry in TABLE:
        for place in (*entry.places.deploy, *entry.places.legacy):
            assert f".{place.split('.', 1)[1]}`" in text if "." in place else f"`{place}`" in text


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="must hold"):
        updated("nothing")
