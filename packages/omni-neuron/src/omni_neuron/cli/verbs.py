"""Verbs: entry points of the group `omni_neuron.commands`.

A verb is a module with `SUMMARY: str`, `add_arguments(parser)` and `run(args) -> int`. Only the verb that is
called is imported; the summaries of the others are read from their source, so that `--help` stays fast
whatever the modules import.
"""

import argparse
import ast
import difflib
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol, cast

from omni_neuron.runtime.errors import InputError, SetupError

GROUP = "omni_neuron.commands"
# Verbs of our own packages that may be absent, and what brings them.
INSTALL = {"generate": "omni-neuron[wan22]"}


class Verb(Protocol):
    """The module behind an entry point."""

    SUMMARY: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def installed_verbs() -> dict[str, EntryPoint]:
    """The verbs of the installed packages, in alphabetical order."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def load(name: str, verbs: Mapping[str, EntryPoint]) -> Verb:
    """Import one verb.

    Raises InputError for a name that no package has, SetupError where the package is not installed or one
    that it needs is missing.
    """
    if name not in verbs:
        raise unknown(name, verbs)
    try:
        return cast(Verb, verbs[name].load())
    except ModuleNotFoundError as error:
        raise SetupError(
            f"The verb {name} cannot start because {error.name} is not installed: run omni-neuron doctor."
        ) from error


def unknown(name: str, verbs: Mapping[str, EntryPoint]) -> Exception:
    """The error for a verb that is not there: how to install it, or which one may have been meant."""
    if name in INSTALL:
        return SetupError(
            f"The verb {name} is not installed: run uv sync in a clone, or, with the wheels of "
            f'uv build --all-packages --wheel, pip install --find-links dist "{INSTALL[name]}".'
        )
    near = difflib.get_close_matches(name, [*verbs, *INSTALL], n=1)
    hint = f"the nearest is {near[0]}" if near else f"choose from {', '.join(verbs)}"
    return InputError(f"There is no verb {name!r}; {hint}.")


def summary(point: EntryPoint) -> str:
    """`SUMMARY` of a verb, from its source where that can be found without an import."""
    source = _source_file(point.module)
    if source is not None:
        for statement in ast.parse(source.read_text()).body:
            value = _summary_value(statement)
            if value is not None:
                return value
    try:
        return str(import_module(point.module).SUMMARY)
    except (ImportError, AttributeError) as error:
        return f"(cannot be loaded: {error})"


def _summary_value(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets, value = [statement.target], statement.value
    else:
        return None
    named = any(isinstance(target, ast.Name) and target.id == "SUMMARY" for target in targets)
    if named and isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    return None


def _source_file(module: str) -> Path | None:
    """File of a module, looked for in the folders of its top package without executing any package."""
    top, *inner = module.split(".")
    spec = PathFinder.find_spec(top)
    if spec is None:
        return None
    if not inner:
        files = [Path(spec.origin or "")]
    else:
        stems = [Path(folder, *inner) for folder in spec.submodule_search_locations or ()]
        files = [file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py")]
    return next((file for file in files if file.suffix == ".py" and file.is_file()), None)
