import types

import pytest

from omni_neuron.runtime.env_var import FLAG, TEXT, EnvVar, declared, documented
from omni_neuron.runtime.errors import InputError

FLAG_VARIABLE = EnvVar[bool]("OMNI_TEST_FLAG", False, FLAG, "A flag.")


def test_read_when_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMNI_TEST_FLAG", raising=False)
    assert FLAG_VARIABLE() is False
    assert not FLAG_VARIABLE.is_set()
    monkeypatch.setenv("OMNI_TEST_FLAG", "1")
    assert FLAG_VARIABLE() is True
    assert FLAG_VARIABLE.is_set()
    monkeypatch.setenv("OMNI_TEST_FLAG", "")
    assert FLAG_VARIABLE() is False
    assert not FLAG_VARIABLE.is_set()


def test_set_and_unset_change_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNI_TEST_FLAG", "0")
    FLAG_VARIABLE.set("1")
    assert FLAG_VARIABLE() is True
    with pytest.raises(ValueError):
        FLAG_VARIABLE.set("true")
    assert FLAG_VARIABLE() is True
    FLAG_VARIABLE.unset()
    assert not FLAG_VARIABLE.is_set()
    FLAG_VARIABLE.unset()


@pytest.mark.parametrize("value", ["true", "2", "-1", " 1", "yes"])
def test_an_error_names_variable_value_and_rule(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("OMNI_TEST_FLAG", value)
    with pytest.raises(InputError) as caught:
        FLAG_VARIABLE()
    assert str(caught.value) == f"OMNI_TEST_FLAG={value!r} is not valid: it must be 0 or 1."


def test_the_table_lists_what_a_module_declares() -> None:
    module = types.ModuleType("envs")
    module.first = FLAG_VARIABLE  # type: ignore[attr-defined]
    module.second = EnvVar[str | None]("OMNI_TEST_TEXT", None, TEXT, "One | two.")  # type: ignore[attr-defined]
    module.other = 3  # type: ignore[attr-defined]
    assert [variable.name for variable in declared(module)] == ["OMNI_TEST_FLAG", "OMNI_TEST_TEXT"]
    assert documented(module) == [
        ("OMNI_TEST_FLAG", "0 or 1", "0", "A flag."),
        ("OMNI_TEST_TEXT", "text", "unset", "One | two."),
    ]
