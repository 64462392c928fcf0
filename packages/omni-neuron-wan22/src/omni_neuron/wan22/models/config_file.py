"""The ``config.json`` of one component of a checkpoint, read into the dataclass that mirrors it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.regular_file import regular_text

REMEDY = "take the config.json that belongs to the weights."
DEFAULT_BOUNDS = (1, 2**20)


@dataclass(frozen=True)
class ConfigFile:
    """Base of the configurations: fields carry the names and defaults of the file's keys.

    Unknown keys, wrong types and numbers out of bounds are refused here, contradictions by a subclass in
    ``__post_init__``.
    """

    component: ClassVar[str]
    """How messages call it."""
    inert: ClassVar[frozenset[str]] = frozenset()
    """Keys that may be there and change nothing that is computed here."""
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Least and largest value of fields, or of their entries, other than 1 and 2**20.

    They are far from any model, and keep what is built of them within the integers of torch.
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            entries = enumerate(value) if isinstance(value, tuple) else [(None, value)]
            for index, entry in entries:
                name = field.name if index is None else f"{field.name}[{index}]"
                self._check_bounds(name, entry, *self.bounds.get(field.name, DEFAULT_BOUNDS))

    def _check_bounds(self, name: str, value: object, least: float, most: float) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return
        if not least <= value <= most:  # which nan is not
            raise InputError(f"{self.component} config {name}={value} must lie in {least}..{most}; {REMEDY}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build from the content of a file; keys that begin with ``_`` are bookkeeping.

        Raises:
            InputError: a key is unknown, a value has the wrong type, or the fields contradict each other.
        """
        types = get_type_hints(cls)
        known = {field.name for field in fields(cls)}
        unknown = sorted(key for key in values if key not in known | cls.inert and not key.startswith("_"))
        if unknown:
            raise InputError(
                f"{cls.component} config has unknown keys {unknown}; use a checkpoint whose keys are among "
                f"{sorted(known)}."
            )
        chosen = {key: value for key, value in values.items() if key in known}
        for key, value in chosen.items():
            if not _fits(value, types[key]):
                raise InputError(
                    f"{cls.component} config {key}={value!r} must be like the default "
                    f"{getattr(cls, key)!r}; {REMEDY}"
                )
        return cls(
            **{key: tuple(value) if isinstance(value, list) else value for key, value in chosen.items()}
        )

    @classmethod
    def from_json_file(cls, path: str | Path) -> Self:
        """Read a file.

        Raises:
            InputError: names the file and what `read_json_object` or `from_dict` found.
        """
        content = read_json_object(Path(path))
        try:
            return cls.from_dict(content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def read_json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        InputError: there is no such file, it cannot be read, or it holds something else.
    """
    try:
        content = json.loads(regular_text(path))
    except FileNotFoundError:
        raise InputError(f"{path} is missing, so this is no checkpoint in diffusers' layout.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a {type(content).__name__}, but it must be a JSON object.")
    return content


def _fits(value: object, kind: Any) -> bool:
    """Whether a JSON value is of an annotated type; a whole number is a float as well."""
    if get_origin(kind) is UnionType:
        return any(_fits(value, option) for option in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, list | tuple) and all(_fits(item, get_args(kind)[0]) for item in value)
    if kind in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)
