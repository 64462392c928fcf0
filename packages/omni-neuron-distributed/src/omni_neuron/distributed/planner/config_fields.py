"""The fields of a checkpoint's config file, each of the type and within the bounds that a price needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omni_neuron.runtime.errors import InputError

MAX_COUNT = 1 << 20
MAX_LAYERS = 1024
REMEDY = "take the file that belongs to the weights."


@dataclass(frozen=True)
class ConfigFields:
    """One JSON object and where it comes from, for messages."""

    file: Path
    values: Mapping[str, Any]

    def count(self, name: str, most: int = MAX_COUNT, *, default: int | None = None) -> int:
        """A whole number from 1 to ``most``; ``default`` stands for null and for a field that is not there.

        Raises InputError for any other value, and for none where there is no default.
        """
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        return self._whole(name, self.given(name), most)

    def counts(self, name: str, length: int | None = None) -> tuple[int, ...]:
        """A list of whole numbers from 1 on: ``length`` of them or, where that is None, at least one."""
        entries = self._list(name, length)
        return tuple(self._whole(f"{name}[{index}]", entry, MAX_COUNT) for index, entry in enumerate(entries))

    def switches(self, name: str, length: int) -> tuple[bool, ...]:
        """A list of ``length`` times true or false."""
        entries = self._list(name, length)
        if not all(isinstance(entry, bool) for entry in entries):
            raise self._refusal(name, entries, "hold true and false")
        return tuple(entries)

    def switch(self, name: str) -> bool:
        """True or false; false for null and for a field that is not there."""
        value = self.values.get(name) or False
        if not isinstance(value, bool):
            raise self._refusal(name, value, "be true or false")
        return value

    def names_class(self, name: str) -> bool:
        """Whether the pipeline's index gives a component a class: ``["library", "class"]``, not nulls."""
        entry = self.values.get(name) or [None, None]
        if not isinstance(entry, list) or len(entry) != 2:
            raise self._refusal(name, entry, "be a pair of a library and a class")
        return entry[0] is not None

    def given(self, name: str) -> Any:
        """Any value. Raises InputError where there is none."""
        if name not in self.values:
            raise InputError(f"{self.file} lacks the field {name!r}: fetch the checkpoint again.")
        return self.values[name]

    def _list(self, name: str, length: int | None) -> list[Any]:
        value = self.given(name)
        if not isinstance(value, list) or not (value if length is None else len(value) == length):
            size = "at least one entry" if length is None else f"{length} entries"
            raise self._refusal(name, value, f"be a list of {size}")
        return value

    def _whole(self, name: str, value: object, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise self._refusal(name, value, f"be a whole number from 1 to {most}")
        return value

    def _refusal(self, name: str, value: object, rule: str) -> InputError:
        return InputError(f"{name}={repr(value)[:80]} of {self.file} must {rule}: {REMEDY}")


def read_fields(file: Path) -> ConfigFields:
    """The JSON object in a file.

    Raises InputError for what is no readable file, or holds something else.
    """
    if not file.is_file():  # opening a pipe would wait for who writes into it
        raise InputError(f"{file} must be a JSON file, but is none: complete the folder.")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{file} must be a JSON file, but cannot be read as one ({error}): {REMEDY}"
        ) from None
    if not isinstance(content, dict):
        raise InputError(f"{file} must hold a JSON object, not a {type(content).__name__}: {REMEDY}")
    return ConfigFields(file, content)
