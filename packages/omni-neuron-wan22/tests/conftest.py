"""What the tests of this package share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omni_neuron.runtime.devices import chip_count

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")


def pytest_configure(config: pytest.Config) -> None:
    """The CPU for the whole session, since the platform is chosen when the engine is first imported.

    A device only where there is one and its tests were asked for.
    """
    if config.option.markexpr != "hardware" or not chip_count():
        os.environ["VLLM_NEURON_CPU_MODE"] = "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--layouts-table",
        type=Path,
        metavar="FILE",
        help="where the tests marked layouts write their table too",
    )
