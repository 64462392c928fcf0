import sys
from typing import Any

import pytest

from omni_neuron.cli.verbs import installed_verbs, load, summary, unknown
from omni_neuron.runtime.errors import InputError, SetupError

RUN = "def run(args):\n    return 0"


def test_verbs_of_installed_packages_are_found(add_verb: Any) -> None:
    add_verb("zoom", RUN)
    add_verb("alpha", RUN)
    names = list(installed_verbs())
    assert {"doctor", "zoom", "alpha"} <= set(names)
    assert names == sorted(names)


@pytest.mark.parametrize("summary_line", ['SUMMARY = "Zoom in."', 'SUMMARY: str = "Zoom in."'])
@pytest.mark.parametrize("package", [False, True])
def test_a_summary_costs_no_import(add_verb: Any, summary_line: str, package: bool) -> None:
    add_verb("zoom", f"raise RuntimeError('imported')\n{RUN}", summary=summary_line, package=package)
    point = installed_verbs()["zoom"]
    assert summary(point) == "Zoom in."
    assert point.module not in sys.modules


def test_a_computed_summary_is_imported(add_verb: Any) -> None:
    add_verb("zoom", RUN, summary='SUMMARY = " ".join(["Zoom", "in."])')
    assert summary(installed_verbs()["zoom"]) == "Zoom in."


def test_a_broken_verb_does_not_break_the_list(add_verb: Any) -> None:
    add_verb("zoom", RUN, summary="import no_such_module")
    assert summary(installed_verbs()["zoom"]) == "(cannot be loaded: No module named 'no_such_module')"


def test_a_verb_without_its_libraries_says_which(add_verb: Any) -> None:
    add_verb("zoom", RUN, summary="import no_such_module")
    with pytest.raises(SetupError, match="zoom cannot start because no_such_module is not installed"):
        load("zoom", installed_verbs())


def test_a_verb_of_an_absent_package_names_the_command() -> None:
    with pytest.raises(SetupError, match=r'run uv sync .* --find-links dist "omni-neuron\[wan22\]"'):
        load("generate", {})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("doctr", "the nearest is doctor"),
        ("genrate", "the nearest is generate"),
        ("xyz", "choose from doctor, zoom"),
    ],
)
def test_the_nearest_verb_is_suggested(add_verb: Any, name: str, hint: str) -> None:
    add_verb("zoom", RUN)
    verbs = {key: point for key, point in installed_verbs().items() if key in ("doctor", "zoom")}
    error = unknown(name, verbs)
    assert isinstance(error, InputError)
    assert str(error) == f"There is no verb {name!r}; {hint}."
