import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.runtime.env_var import (
    FLAG,
    INDEX_LIST,
    TEXT,
    EnvVar,
    choice,
    declared,
    integer,
    markdown_table,
)
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


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("0", (0,)),
        ("0-63", tuple(range(64))),
        ("0-2,8,10-11", (0, 1, 2, 8, 10, 11)),
        ("3, 1 , 5-6", (3, 1, 5, 6)),
        ("7-7", (7,)),
    ],
)
def test_index_lists(text: str, indices: tuple[int, ...]) -> None:
    assert INDEX_LIST.parse(text) == indices


@pytest.mark.parametrize("text", ["a", "3-1", "-1", "1-", "1,,2", ",", "0,0", "0-3,2", "1-2-3", "1.5", "²"])
def test_bad_index_lists(text: str) -> None:
    with pytest.raises(ValueError):
        INDEX_LIST.parse(text)


@given(st.lists(st.integers(0, 500), min_size=1, unique=True))
def test_an_index_list_keeps_its_order(indices: list[int]) -> None:
    assert INDEX_LIST.parse(",".join(map(str, indices))) == tuple(indices)


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_range_is_inclusive(first: int, length: int) -> None:
    assert INDEX_LIST.parse(f"{first}-{first + length}") == tuple(range(first, first + length + 1))


def test_integers_and_choices_keep_their_bounds() -> None:
    small = integer(1, 2)
    assert [small.parse(text) for text in ("1", "2")] == [1, 2]
    for text in ("0", "3", "x", ""):
        with pytest.raises(ValueError):
            small.parse(text)
    assert integer(5).parse("10000") == 10000
    assert small.rule == "a whole number of at least 1 and at most 2"
    word = choice("neuron", "cpu")
    assert word.parse("cpu") == "cpu"
    with pytest.raises(ValueError):
        word.parse("gpu")


def test_the_table_lists_what_a_module_declares() -> None:
    module = types.ModuleType("envs")
    module.first = FLAG_VARIABLE  # type: ignore[attr-defined]
    module.second = EnvVar[str | None]("OMNI_TEST_TEXT", None, TEXT, "One | two.")  # type: ignore[attr-defined]
    module.other = 3  # type: ignore[attr-defined]
    assert [variable.name for variable in declared(module)] == ["OMNI_TEST_FLAG", "OMNI_TEST_TEXT"]
    assert markdown_table(module).splitlines()[2:] == [
        "| `OMNI_TEST_FLAG` | 0 or 1 | 0 | A flag. |",
        "| `OMNI_TEST_TEXT` | text | unset | One \\| two. |",
    ]
