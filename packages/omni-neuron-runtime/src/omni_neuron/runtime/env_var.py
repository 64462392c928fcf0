"""Typed environment variables that are read when asked for, and documented where they are declared.

Every package declares its own in a module named ``envs``::

    debug = EnvVar("OMNI_NEURON_DEBUG", False, FLAG, "Show the traceback of an error.")
    ...
    if envs.debug():

An empty value counts as unset, as it does for most tools that a shell can only blank and not unset.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Generic, TypeVar

from omni_neuron.runtime.errors import InputError

T = TypeVar("T")
ValueT = TypeVar("ValueT", covariant=True)


@dataclass(frozen=True)
class Kind(Generic[ValueT]):
    """What a variable may hold: the rule in words, and a parser that raises ValueError where it is broken."""

    rule: str
    parse: Callable[[str], ValueT]


@dataclass(frozen=True)
class EnvVar(Generic[T]):
    """One environment variable. Calling it gives the value of now."""

    name: str
    default: T
    kind: Kind[T]
    meaning: str

    def __call__(self) -> T:
        """The parsed value, or the default when unset; InputError for a value that breaks the rule."""
        text = os.environ.get(self.name, "")
        if not text:
            return self.default
        try:
            return self.kind.parse(text)
        except ValueError:
            raise InputError(f"{self.name}={text!r} is not valid: it must be {self.kind.rule}.") from None

    def is_set(self) -> bool:
        return bool(os.environ.get(self.name, ""))

    def set(self, text: str) -> None:
        """Set the variable for this process and its children, after the check that a reader would make."""
        self.kind.parse(text)
        os.environ[self.name] = text

    def unset(self) -> None:
        os.environ.pop(self.name, None)


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(text)
    return text == "1"


def _index_list(text: str) -> tuple[int, ...]:
    indices: list[int] = []
    for item in text.split(","):
        first, dash, last = (part.strip() for part in item.partition("-"))
        if not _is_number(first) or (dash and not _is_number(last)):
            raise ValueError(text)
        stop = int(last) if dash else int(first)
        if stop < int(first):
            raise ValueError(text)
        indices.extend(range(int(first), stop + 1))
    if len(set(indices)) != len(indices):
        raise ValueError(text)
    return tuple(indices)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def integer(minimum: int, maximum: int | None = None) -> Kind[int]:
    """A whole number with inclusive bounds."""

    def parse(text: str) -> int:
        value = int(text)
        if value < minimum or (maximum is not None and value > maximum):
            raise ValueError(text)
        return value

    upper = "" if maximum is None else f" and at most {maximum}"
    return Kind(f"a whole number of at least {minimum}{upper}", parse)


def choice(*values: str) -> Kind[str]:
    """One of a few words."""

    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    return Kind("one of " + ", ".join(values), parse)


FLAG: Kind[bool] = Kind("0 or 1", _flag)
TEXT: Kind[str] = Kind("text", str)
INDEX_LIST: Kind[tuple[int, ...]] = Kind(
    "a comma-separated list of different indices and ascending ranges such as 0-3,8", _index_list
)


def declared(module: ModuleType) -> list[EnvVar[object]]:
    """The variables that an ``envs`` module declares, in the order of the file."""
    return [value for value in vars(module).values() if isinstance(value, EnvVar)]


def markdown_table(module: ModuleType) -> str:
    """The documentation table of one ``envs`` module."""
    rows = ["| variable | value | default | meaning |", "|---|---|---|---|"]
    for variable in declared(module):
        cells = (f"`{variable.name}`", variable.kind.rule, _shown(variable.default), variable.meaning)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _shown(default: object) -> str:
    if default is None:
        return "unset"
    return str(int(default)) if isinstance(default, bool) else str(default)
