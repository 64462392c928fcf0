"""The table of keys, and the lookups that reading needs."""

from __future__ import annotations

import difflib

from omni_neuron.platform.stage_config.features import FEATURES
from omni_neuron.platform.stage_config.key import LEGACY_STAGE, Entry, Key
from omni_neuron.platform.stage_config.keys import KEYS

TABLE: tuple[Entry, ...] = (*KEYS, *FEATURES)
BY_NAME: dict[str, Key] = {entry.name: entry for entry in TABLE if isinstance(entry, Key)}


def places_of(entry: Entry, form: str) -> tuple[str, ...]:
    """Where a key may stand in one of the two forms."""
    return entry.places.legacy if form == LEGACY_STAGE else entry.places.deploy


def by_place(form: str) -> dict[str, Entry]:
    """Every place of a form."""
    return {place: entry for entry in TABLE for place in places_of(entry, form)}


def blocks_of(form: str) -> frozenset[str]:
    """The places of a form that hold further keys, apart from the stage itself."""
    blocks: set[str] = set()
    for place in by_place(form):
        parts = place.split(".")
        blocks.update(".".join(parts[:n]) for n in range(1, len(parts)))
    return frozenset(blocks)


def nearest_place(place: str, form: str) -> str | None:
    """The known place that an unknown one probably meant: by its last word first, then as a whole."""
    known = [*by_place(form), *sorted(blocks_of(form))]
    last = {candidate.rsplit(".", 1)[-1] for candidate in known}
    word = difflib.get_close_matches(place.rsplit(".", 1)[-1], sorted(last), n=1)
    same = [candidate for candidate in known if candidate.rsplit(".", 1)[-1] in word]
    return max(same, key=lambda known: difflib.SequenceMatcher(None, known, place).ratio(), default=None)


def nearest_name(name: str) -> str | None:
    """The key that an unknown override probably meant."""
    matches = difflib.get_close_matches(name, list(BY_NAME), n=1)
    return matches[0] if matches else None
