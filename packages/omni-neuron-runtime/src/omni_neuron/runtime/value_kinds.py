"""Kinds of value that a user may write, in an environment variable or in a file."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT", covariant=True)

_NUMBER = re.compile(r"[0-9]+")
_RANGE = re.compile(r"([0-9]{1,4})(?:\s*-\s*([0-9]{1,4}))?")  # no host has more than four digits can count


@dataclass(frozen=True)
class Kind(Generic[ValueT]):
    """What a value may be: the rule in words, and a parser that raises ValueError where it is broken.

    The parser takes the text of a variable as well as the value that a file holds, such as a number.
    """

    rule: str
    parse: Callable[[object], ValueT]


def integer(minimum: int, maximum: int | None = None) -> Kind[int]:
    """A whole number with inclusive bounds."""

    def parse(value: object) -> int:
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(value)
        if value < minimum or (maximum is not None and value > maximum):
            raise ValueError(value)
        return value

    if maximum is None:
        return Kind(f"a whole number of at least {minimum}", parse)
    if minimum == maximum:
        return Kind(f"{minimum}", parse)
    return Kind(f"a whole number from {minimum} to {maximum}", parse)


def choice(*words: str) -> Kind[str]:
    """One of a few words."""

    def parse(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError(value)
        return value

    return Kind(" or ".join(words), parse)


def _index_list(value: object) -> tuple[int, ...]:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        raise ValueError(value)
    indices: list[int] = []
    for item in text.split(","):
        match = _RANGE.fullmatch(item.strip())
        if match is None:
            raise ValueError(value)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(value)
        indices.extend(range(first, last + 1))
    if len(set(indices)) != len(indices):
        raise ValueError(value)
    return tuple(indices)


INDEX_LIST: Kind[tuple[int, ...]] = Kind(
    "a comma-separated list of different indices and ascending ranges such as 0-3,8", _index_list
)
