"""Engines and the reference, shared by all tests of the session, and the table at its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from engine_process import EngineResults, run_engine
from layout_table import EngineRow, render
from reference_run import run_reference
from video_cases import BF16, FP32

from omni_neuron.wan22.checkpoint.tiny import tiny_checkpoint

LAYOUTS = {
    "one-rank": {"tp": 1, "cp": 1, "cfg": 1},
    "tp2": {"tp": 2, "cp": 1, "cfg": 1},
    "tp4": {"tp": 4, "cp": 1, "cfg": 1},
    "cp2": {"tp": 1, "cp": 2, "cfg": 1},
    "cfg2": {"tp": 1, "cp": 1, "cfg": 2},
    "tp2-cp2": {"tp": 2, "cp": 2, "cfg": 1},
    "tp2-cfg2": {"tp": 2, "cp": 1, "cfg": 2},
    "cp2-cfg2": {"tp": 1, "cp": 2, "cfg": 2},
    "tp2-cp2-cfg2": {"tp": 2, "cp": 2, "cfg": 2},
    "ulysses2": {"tp": 1, "cp": 2, "cfg": 1, "ulysses": 2},
    "ulysses2-ring2": {"tp": 1, "cp": 4, "cfg": 1, "ulysses": 2},
    "ulysses2-ring2-travelling": {"tp": 1, "cp": 4, "cfg": 1, "ulysses": 2},
    "tp2-cp2-cfg2-placed": {"tp": 2, "cp": 2, "cfg": 2},
}
# Of a stage file: keys and values go around the ring instead of being gathered; groups that do not ascend.
SETTINGS: dict[str, dict[str, Any]] = {
    "ulysses2-ring2-travelling": {"model_config.ring_attention": True},
    "tp2-cp2-cfg2-placed": {"model_config.placement": "6,2,7,3,4,0,5,1"},
}
CASES = {"float32": FP32, "bfloat16": BF16}
ROWS = pytest.StashKey[list[EngineRow]]()

Engines = Callable[[str, str], tuple[EngineResults, EngineRow]]


@pytest.fixture(scope="session", params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    """Of the session, so that all tests of a layout stand together."""
    return str(request.param)


@pytest.fixture(scope="session")
def degrees(layout: str) -> dict[str, int]:
    return LAYOUTS[layout]


@pytest.fixture
def stage_file(layout: str, tmp_path: Path) -> Path | None:
    """With the settings that have no flag."""
    if layout not in SETTINGS:
        return None
    stage: dict[str, Any] = {"stage_id": 0}
    for name, value in SETTINGS[layout].items():
        block, key = name.split(".")
        stage[block] = {key: value}
    path = tmp_path / "stage.yaml"
    path.write_text(yaml.safe_dump({"stages": [stage]}))
    return path


@pytest.fixture(scope="session")
def rows(pytestconfig: pytest.Config) -> list[EngineRow]:
    return pytestconfig.stash.setdefault(ROWS, [])


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], torch.Tensor]:
    """Latents by case and dtype; every case in fp32, since bf16 is measured against it."""
    every = {case.name: case for case in (*FP32, *BF16)}.values()
    runs = [(case, "float32") for case in every] + [(case, "bfloat16") for case in BF16]
    return run_reference(tmp_path_factory.mktemp("reference"), tiny_checkpoint(), runs)


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory, rows: list[EngineRow]) -> Engines:
    """Results and row of the one engine of a layout and dtype."""

    @cache
    def engine(layout: str, dtype: str) -> tuple[EngineResults, EngineRow]:
        folder = tmp_path_factory.mktemp(f"{layout}-{dtype}")
        start = time.perf_counter()
        results = run_engine(
            folder,
            tiny_checkpoint(),
            LAYOUTS[layout],
            dtype,
            CASES[dtype],
            settings=SETTINGS.get(layout, {}),
        )
        wall_s = time.perf_counter() - start
        row = EngineRow(layout, dtype, "engine", wall_s, results.startup_s, max(results.peak_rss_anon_mib))
        rows.append(row)
        return results, row

    return engine


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the table, also of a session that failed or ran out of time."""
    rows = config.stash.get(ROWS, [])
    if not rows:
        return
    text = render(rows)
    terminalreporter.ensure_newline()
    terminalreporter.write(text)
    file: Path | None = config.getoption("layouts_table", default=None)
    if file is not None:
        file.write_text(text)
