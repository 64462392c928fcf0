"""Options of this package's tests."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--layouts-table",
        type=Path,
        metavar="FILE",
        help="where the tests marked layouts write their table too",
    )
