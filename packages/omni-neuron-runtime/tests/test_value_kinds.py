import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.runtime.value_kinds import INDEX_LIST, choice, integer


@pytest.mark.parametrize(
    ("value", "indices"),
    [
        ("0", (0,)),
        (5, (5,)),
        ("0-63", tuple(range(64))),
        ("0-2,8,10-11", (0, 1, 2, 8, 10, 11)),
        ("3, 1 , 5-6", (3, 1, 5, 6)),
        ("3 - 4", (3, 4)),
        ("7-7", (7,)),
    ],
)
def test_index_lists(value: object, indices: tuple[int, ...]) -> None:
    assert INDEX_LIST.parse(value) == indices


@pytest.mark.parametrize(
    "value",
    [
        *("", "a", "cpu", "3-1", "-1", "1-", "1,", "1,,2", ",", "0,0", "0-3,2", "1-2-3", "1.5", "0..3", "²"),
        *("0-99999", -1, True, None, 1.0, [0, 1]),
    ],
)
def test_bad_index_lists(value: object) -> None:
    with pytest.raises(ValueError):
        INDEX_LIST.parse(value)


@given(st.lists(st.integers(0, 500), min_size=1, unique=True))
def test_an_index_list_keeps_its_order(indices: list[int]) -> None:
    assert INDEX_LIST.parse(",".join(map(str, indices))) == tuple(indices)


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_range_is_inclusive(first: int, length: int) -> None:
    assert INDEX_LIST.parse(f"{first}-{first + length}") == tuple(range(first, first + length + 1))


def test_integers_keep_their_bounds() -> None:
    small = integer(1, 2)
    assert [small.parse(value) for value in ("1", " 2", 1, 2)] == [1, 2, 1, 2]
    for value in ("0", "3", "x", "", "-1", "1.0", "²", 0, 3, True, 2.0, None):
        with pytest.raises(ValueError):
            small.parse(value)
    assert integer(5).parse("10000") == 10000
    assert [kind.rule for kind in (small, integer(5), integer(0, 0))] == [
        "a whole number from 1 to 2",
        "a whole number of at least 5",
        "0",
    ]


def test_choices_are_words() -> None:
    word = choice("neuron", "cpu")
    assert word.parse("cpu") == "cpu"
    assert word.rule == "neuron or cpu"
    for value in ("gpu", "", None, ["cpu"]):
        with pytest.raises(ValueError):
            word.parse(value)
