"""The kinds of value that a stage file may hold: how the documentation names them, and how one is read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_DTYPES = {
    "float32": "float32",
    "fp32": "float32",
    "float": "float32",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "auto": "bfloat16",
}

_ENCODER = json.JSONEncoder(default=str, ensure_ascii=False)
_LONGEST = 200


@dataclass(frozen=True)
class Kind:
    """A kind of value.

    Attributes:
        name: what the value must be, as the end of a sentence.
        read: turns the value of the file into ours; raises ValueError when it is of another kind.
    """

    name: str
    read: Callable[[object], object]


def as_written(value: object) -> str:
    """A value the way a YAML file writes it on one line, cut where it is too long for a message."""
    text = ""
    try:
        for chunk in _ENCODER.iterencode(value):  # bit by bit, since aliases can make a small file huge
            text += chunk
            if len(text) > _LONGEST:
                return f"{text[:_LONGEST]}..."
    except TypeError:  # YAML has keys that JSON has not
        return f"{text}..."
    return text


def integer(minimum: int, maximum: int | None = None) -> Kind:
    """A whole number with inclusive bounds."""

    def read(value: object) -> object:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(value)
        if value < minimum or (maximum is not None and value > maximum):
            raise ValueError(value)
        return value

    if maximum is None:
        return Kind(f"a whole number of at least {minimum}", read)
    if minimum == maximum:
        return Kind(f"{minimum}", read)
    return Kind(f"a whole number from {minimum} to {maximum}", read)


def number(minimum: float, maximum: float = math.inf, *, above: bool = False) -> Kind:
    """A finite number with inclusive bounds; `above` excludes the lower one."""

    def read(value: object) -> object:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise ValueError(value)
        if value < minimum or value > maximum or (above and value == minimum):
            raise ValueError(value)
        return float(value)

    lower = f"above {minimum:g}" if above else f"of at least {minimum:g}"
    bounded = math.isfinite(maximum)
    return Kind(f"a number from {minimum:g} to {maximum:g}" if bounded else f"a number {lower}", read)


def choice(*words: str) -> Kind:
    """One of a few words."""

    def read(value: object) -> object:
        if value not in words:
            raise ValueError(value)
        return value

    return Kind(" or ".join(words), read)


def _boolean(value: object) -> object:
    if not isinstance(value, bool):
        raise ValueError(value)
    return value


def _text(value: object) -> object:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(value)
    return value


def _dotted_path(value: object) -> object:
    if not isinstance(value, str) or len(value.split(".")) < 2 or not value.replace(".", "_").isidentifier():
        raise ValueError(value)
    return value


def _dtype(value: object) -> object:
    if not isinstance(value, str) or value.lower() not in _DTYPES:
        raise ValueError(value)
    return _DTYPES[value.lower()]


def _environment(value: object) -> object:
    if not isinstance(value, Mapping):
        raise ValueError(value)
    read: dict[str, str] = {}
    for name, setting in value.items():
        if not isinstance(name, str) or not isinstance(setting, str | int | float):
            raise ValueError(value)
        read[name] = str(int(setting)) if isinstance(setting, bool) else str(setting)
    return read


def _attention_spec(value: object) -> object:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Mapping) and set(value) == {"backend"} and isinstance(value["backend"], str):
        return value["backend"]
    raise ValueError(value)


def _attention_roles(value: object) -> object:
    if not isinstance(value, Mapping) or not all(isinstance(role, str) for role in value):
        raise ValueError(value)
    return {role: _attention_spec(spec) for role, spec in value.items()}


BOOLEAN = Kind("true or false", _boolean)
TEXT = Kind("a word", _text)
DOTTED_PATH = Kind("the dotted path of a class", _dotted_path)
DTYPE = Kind("float32 or bfloat16 (fp32, bf16; auto is bfloat16)", _dtype)
ENVIRONMENT = Kind("a block of names and texts", _environment)
ATTENTION = Kind("the name of a backend", _attention_spec)
ATTENTION_ROLES = Kind("a block that gives roles the name of a backend", _attention_roles)
