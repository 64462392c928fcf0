"""The kinds of value that a stage file may hold: how the documentation names them, and how one is read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from omni_neuron.runtime.value_kinds import Kind

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


def number(minimum: float, maximum: float = math.inf, *, above: bool = False) -> Kind[float]:
    """A finite number with inclusive bounds; `above` excludes the lower one."""

    def parse(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise ValueError(value)
        if value < minimum or value > maximum or (above and value == minimum):
            raise ValueError(value)
        return float(value)

    lower = f"above {minimum:g}" if above else f"of at least {minimum:g}"
    bounded = math.isfinite(maximum)
    return Kind(f"a number from {minimum:g} to {maximum:g}" if bounded else f"a number {lower}", parse)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(value)
    return value


def _true(value: object) -> bool:
    if value is not True:
        raise ValueError(value)
    return True


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(value)
    return value


def _dotted_path(value: object) -> str:
    if not isinstance(value, str) or len(value.split(".")) < 2 or not value.replace(".", "_").isidentifier():
        raise ValueError(value)
    return value


def _dtype(value: object) -> str:
    if not isinstance(value, str) or value.lower() not in _DTYPES:
        raise ValueError(value)
    return _DTYPES[value.lower()]


def _environment(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError(value)
    read: dict[str, str] = {}
    for name, setting in value.items():
        if not isinstance(name, str) or not isinstance(setting, str | int | float):
            raise ValueError(value)
        read[name] = str(int(setting)) if isinstance(setting, bool) else str(setting)
    return read


def _attention_spec(value: object) -> str:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Mapping) and set(value) == {"backend"} and isinstance(value["backend"], str):
        return value["backend"]
    raise ValueError(value)


def _attention_roles(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(role, str) for role in value):
        raise ValueError(value)
    return {role: _attention_spec(spec) for role, spec in value.items()}


TRUE = Kind("true", _true)
BOOLEAN = Kind("true or false", _boolean)
TEXT = Kind("a word", _text)
DOTTED_PATH = Kind("the dotted path of a class", _dotted_path)
DTYPE = Kind("float32 or bfloat16 (fp32, bf16; auto is bfloat16)", _dtype)
ENVIRONMENT = Kind("a block of names and texts", _environment)
ATTENTION = Kind("the name of a backend", _attention_spec)
ATTENTION_ROLES = Kind("a block that gives roles the name of a backend", _attention_roles)
