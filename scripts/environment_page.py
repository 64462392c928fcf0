"""Write docs/environment.md from the modules named `envs` of every package."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

from omni_neuron.runtime.env_var import documented

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "environment.md"
INTRODUCTION = """\
# Environment variables

Every variable that this project reads, sets or checks, by package. A value that breaks its rule is an error
that names the variable, and an empty value counts as unset. `nox -s docs` writes this page from the modules
named `envs`.
"""


def modules() -> list[ModuleType]:
    """The modules that declare variables, runtime first, for what several packages share stands there."""
    sources = [file.parent for file in ROOT.glob("packages/*/src/omni_neuron/*/envs.py")]
    names = sorted((folder.name for folder in sources), key=lambda name: (name != "runtime", name))
    return [import_module(f"omni_neuron.{name}.envs") for name in names]


def table(module: ModuleType) -> str:
    """One package's variables; a package that stands on none of ours lists them by itself."""
    rows = ["| variable | value | default | meaning |", "|---|---|---|---|"]
    for name, *cells in documented(module) or module.VARIABLES:
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in (f"`{name}`", *cells)) + " |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """The text of the page."""
    sections = [
        f"## {module.__name__.rpartition('.')[0]}\n\n{module.__doc__.strip()}\n\n{table(module)}"
        for module in modules()
    ]
    return "\n".join([INTRODUCTION, *sections])


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
