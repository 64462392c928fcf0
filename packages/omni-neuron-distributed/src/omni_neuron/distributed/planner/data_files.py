"""The tables of numbers beside this package: machines, published figures, fitted constants, kernels."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def read_table(name: str) -> dict[str, Any]:
    """One TOML file of the ``data`` folder."""
    return tomllib.loads((files("omni_neuron.distributed.planner") / "data" / f"{name}.toml").read_text())
