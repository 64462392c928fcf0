"""The packages and sources of this workspace, read from the files."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = sorted(file.parent for file in ROOT.glob("packages/*/pyproject.toml"))
PROJECTS: dict[str, dict[str, Any]] = {
    folder.name: tomllib.loads((folder / "pyproject.toml").read_text())["project"] for folder in FOLDERS
}
VERSION = PROJECTS["omni-neuron"]["version"]


def sources() -> list[Path]:
    """Every Python file of the packages' `src`."""
    return sorted(ROOT.glob("packages/*/src/**/*.py"))


def python_files() -> list[Path]:
    """Every Python file that is ours: sources, tests, benchmarks, scripts, the noxfile."""
    folders = [ROOT / "packages", ROOT / "tests", ROOT / "scripts", ROOT / "examples"]
    return [ROOT / "noxfile.py", *sorted(file for folder in folders for file in folder.rglob("*.py"))]


def named(files: list[Path]) -> list[str]:
    return [str(file.relative_to(ROOT)) for file in files]
