"""The keys of what we lack, from `features.yaml`: accepted where they ask for nothing, refused elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

import yaml

from omni_neuron.platform.stage_config.key import (
    ENGINE,
    FILE,
    ON_STAGE,
    PARALLEL,
    PROCESS,
    WIDE,
    WIDE_PARALLEL,
    Feature,
    Places,
)

_PLACES = {
    "every chunk": Places(("async_chunk", "stages.async_chunk"), ("async_chunk",)),
    "file": FILE,
    "stage": ON_STAGE,
    "process": PROCESS,
    "parallel": PARALLEL,
    "wide parallel": WIDE_PARALLEL,
    "wide": WIDE,
    "batch": Places(ENGINE.deploy, (*ENGINE.legacy, "stage_args.runtime.max_batch_size")),
    "engine": ENGINE,
}
# What asks for nothing, and what to do about another value.
_GROUPS: dict[str, tuple[bool | int | None, str]] = {
    "switch": (False, "remove the key or set it to false"),
    "count": (1, "remove the key or set it to 1"),
    "empty": (None, "remove the key"),
    "details": (None, "remove the key"),
}


def _features() -> Iterator[Feature]:
    text = files(__package__).joinpath("features.yaml").read_text(encoding="utf-8")
    for where, entries in yaml.safe_load(text).items():
        for entry in entries:
            reason = entry.get("reason") or f"omni-neuron has no {entry['lacks']} yet"
            for group, (neutral, usual) in _GROUPS.items():
                for name in entry.get(group, "").split():
                    yield Feature(
                        name,
                        neutral,
                        reason,
                        entry.get("remedy", usual),
                        _PLACES[where].of(name),
                        is_switch=group != "details",
                    )


FEATURES: tuple[Feature, ...] = tuple(_features())
