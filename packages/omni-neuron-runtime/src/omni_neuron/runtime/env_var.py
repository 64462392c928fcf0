"""Typed environment variables that are read when asked for, and documented where they are declared.

Every package declares its own in a module named ``envs``::

    debug = EnvVar("OMNI_NEURON_DEBUG", False, FLAG, "Show the traceback of an error.")
    ...
    if envs.debug():

An empty value counts as unset, as it does for most tools that a shell can only blank and not unset.
"""

import os
from dataclasses import dataclass
from types import ModuleType
from typing import Generic, TypeVar

from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.value_kinds import Kind

T = TypeVar("T")


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


def _flag(value: object) -> bool:
    if value not in ("0", "1"):
        raise ValueError(value)
    return value == "1"


FLAG: Kind[bool] = Kind("0 or 1", _flag)
TEXT: Kind[str] = Kind("text", str)


def declared(module: ModuleType) -> list[EnvVar[object]]:
    """The variables that an ``envs`` module declares, in the order of the file."""
    return [value for value in vars(module).values() if isinstance(value, EnvVar)]


def documented(module: ModuleType) -> list[tuple[str, str, str, str]]:
    """Name, rule, default and meaning of every variable that an ``envs`` module declares."""
    return [
        (variable.name, variable.kind.rule, _shown(variable.default), variable.meaning)
        for variable in declared(module)
    ]


def _shown(default: object) -> str:
    if default is None:
        return "unset"
    return str(int(default)) if isinstance(default, bool) else str(default)
