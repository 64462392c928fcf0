"""docs/environment.md is what the modules declare."""

from collections import Counter

from environment_page import TARGET, modules, page

from omni_neuron.runtime.env_var import declared


def test_the_page_is_current():
    assert TARGET.read_text() == page(), "run nox -s docs"


def test_a_variable_is_declared_once():
    names = Counter(variable.name for module in modules() for variable in declared(module))
    assert [name for name, count in names.items() if count > 1] == []
