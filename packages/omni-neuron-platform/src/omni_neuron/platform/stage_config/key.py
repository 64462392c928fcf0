"""What the table of keys is made of.

A place is a path with dots. `stages` and `stage_args` stand for the one stage in their list, so
`stages.parallel_config.ring_degree` is the ring degree in the block `parallel_config` of the stage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from omni_neuron.platform.stage_config.values import Kind

STAGE = "stages"
LEGACY_STAGE = "stage_args"
_ENGINE_ARGS = f"{LEGACY_STAGE}.engine_args"


@dataclass(frozen=True)
class Places:
    """Where a key stands in the 0.30 form and in the 0.24 form; the first 0.30 place is where we write it."""

    deploy: tuple[str, ...] = ()
    legacy: tuple[str, ...] = ()


@dataclass(frozen=True)
class Key:
    """A key that something acts on.

    Attributes:
        name: how the rest of the code, and an override, calls it.
        kind: its values.
        acts: who acts on it, and how.
        places: where it may stand.
        flag: the command-line flag of the same meaning.
    """

    name: str
    kind: Kind
    acts: str
    places: Places = Places()
    flag: str | None = None


@dataclass(frozen=True)
class Feature:
    """A key of something that we lack: accepted where it asks for nothing, refused elsewhere.

    Attributes:
        name: the key.
        neutral: values that ask for nothing; null always does.
        reason: why other values are refused, as a clause.
        remedy: what to do in place of it, where removing the key is not all.
        places: where it may stand.
    """

    name: str
    neutral: tuple[object, ...]
    reason: str
    remedy: str = ""
    places: Places = Places()


Entry = Key | Feature


def lacking(what: str) -> str:
    """The usual reason."""
    return f"omni-neuron has no {what} yet"


def top(*entries: Entry) -> list[Entry]:
    """Keys of the whole file."""
    return [replace(e, places=Places((e.name,), (e.name,))) for e in entries]


def stage(*entries: Entry) -> list[Entry]:
    """Keys of the stage itself, in both forms."""
    return [replace(e, places=Places((f"{STAGE}.{e.name}",), (f"{LEGACY_STAGE}.{e.name}",))) for e in entries]


def engine(*entries: Entry, block: str = "") -> list[Entry]:
    """Keys of the engine, in the 0.24 form under `engine_args`; `block` names a block that holds them."""
    return [
        replace(
            e,
            name=f"{block}{e.name}",
            places=Places((f"{STAGE}.{block}{e.name}",), (f"{_ENGINE_ARGS}.{block}{e.name}",)),
        )
        for e in entries
    ]


def wide(*entries: Entry) -> list[Entry]:
    """Keys of the engine that the 0.30 form takes for the whole file or in the stage."""
    return [
        replace(e, places=Places((e.name, f"{STAGE}.{e.name}"), (f"{_ENGINE_ARGS}.{e.name}",)))
        for e in entries
    ]


def parallel(*entries: Entry, for_the_file: bool = False) -> list[Entry]:
    """Degrees, in `parallel_config` or, in the 0.30 form, also beside it.

    They are written into the block, because 0.29 drops them elsewhere.
    """
    return [
        replace(
            e,
            places=Places(
                (
                    f"{STAGE}.parallel_config.{e.name}",
                    f"{STAGE}.{e.name}",
                    *((e.name,) if for_the_file else ()),
                ),
                (f"{_ENGINE_ARGS}.parallel_config.{e.name}",),
            ),
        )
        for e in entries
    ]


def sampling(*entries: Entry) -> list[Entry]:
    """What a request gets when it does not say otherwise."""
    block = "default_sampling_params"
    return [
        replace(
            e,
            places=Places((f"{STAGE}.{block}.{e.name}",), (f"{LEGACY_STAGE}.{block}.{e.name}",)),
        )
        for e in entries
    ]


def runtime(deploy: str | None, *entries: Entry) -> list[Entry]:
    """Keys of the block `runtime` of the 0.24 form, called `deploy` in the 0.30 form."""
    places = (f"{STAGE}.{deploy}",) if deploy is not None else ()
    return [replace(e, places=Places(places, (f"{LEGACY_STAGE}.runtime.{e.name}",))) for e in entries]
