"""What the table of keys is made of.

A place is a path with dots. `stages` and `stage_args` stand for the one stage in their list, so
`stages.parallel_config.ring_degree` is the ring degree in the block `parallel_config` of the stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omni_neuron.runtime.value_kinds import Kind

STAGE = "stages"
LEGACY_STAGE = "stage_args"


@dataclass(frozen=True)
class Places:
    """Where a key stands in the 0.30 form and in the 0.24 form; the first 0.30 place is where we write it."""

    deploy: tuple[str, ...]
    legacy: tuple[str, ...]

    def of(self, name: str) -> Places:
        """These places with a key's name in them."""
        deploy, legacy = (tuple(place.format(name) for place in form) for form in (self.deploy, self.legacy))
        return Places(deploy, legacy)


FILE = Places(("{}",), ("{}",))
ON_STAGE = Places(("stages.{}",), ("stage_args.{}",))
ENGINE = Places(("stages.{}",), ("stage_args.engine_args.{}",))
# Engine's settings that the 0.30 form takes for the whole file as well.
WIDE = Places(("{}", "stages.{}"), ENGINE.legacy)
# Degrees are written into the block, because 0.29 drops them elsewhere.
PARALLEL = Places(("stages.parallel_config.{}", "stages.{}"), ("stage_args.engine_args.parallel_config.{}",))
WIDE_PARALLEL = Places((*PARALLEL.deploy, "{}"), PARALLEL.legacy)
SAMPLING = Places(("stages.default_sampling_params.{}",), ("stage_args.default_sampling_params.{}",))
PROCESS = Places(("stages.{}",), ("stage_args.runtime.{}",))


@dataclass(frozen=True)
class Key:
    """A key that something acts on.

    Attributes:
        name: how the rest of the code, and an override, calls it.
        kind: its values.
        acts: who acts on it, and how.
        where: the places of keys like it.
        flag: the command-line flag of the same meaning.
        for_reader: whether it is for the reader alone, so that the engine's file goes without.
    """

    name: str
    kind: Kind[Any]
    acts: str
    where: Places = ENGINE
    flag: str | None = None
    for_reader: bool = False

    @property
    def places(self) -> Places:
        """Where it may stand."""
        return self.where.of(self.name)


@dataclass(frozen=True)
class Feature:
    """A key of something that we lack: accepted where it asks for nothing, refused elsewhere.

    Attributes:
        name: the key.
        neutral: the value that leaves it off, False or 1; None where only an empty value does.
        reason: why other values are refused, as a clause.
        remedy: what to do about it.
        places: where it may stand.
        is_switch: whether it asks for the feature, and does not only say how.
    """

    name: str
    neutral: bool | int | None
    reason: str
    remedy: str
    places: Places
    is_switch: bool = True

    def asks_for_nothing(self, value: object) -> bool:
        """Whether the value leaves it off; `none`, `auto` and what is empty always do."""
        if value is None or value in ("none", "auto", {}, []):
            return True
        # 1.0 is 1, but true is not.
        return value == self.neutral and isinstance(value, bool) == isinstance(self.neutral, bool)


Entry = Key | Feature
