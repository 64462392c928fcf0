"""A stage file as a flat list of places and values."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from omni_neuron.platform.stage_config.key import LEGACY_STAGE, STAGE
from omni_neuron.platform.stage_config.values import as_written
from omni_neuron.runtime.errors import InputError
from omni_neuron.runtime.regular_file import regular_text

# vLLM-Omni 0.30 reads these blocks of a stage as if their keys stood beside them.
_TRANSPARENT = {f"{STAGE}.{block}" for block in ("engine_args", "engine_extras", "runtime")}


@dataclass(frozen=True)
class Setting:
    """One value of the file.

    Attributes:
        place: where the table knows it, such as `stages.parallel_config.ring_degree`.
        shown: where it stands in the file, for messages.
        value: as the file has it.
    """

    place: str
    shown: str
    value: object


_MERGE = "tag:yaml.org,2002:merge"


class _UniqueKeyLoader(yaml.SafeLoader):
    """A loader that refuses a key given twice, which YAML forbids and PyYAML lets pass."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.deep_construct = True  # so that a block inside itself is an error, and not an endless one

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # the base refuses it
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def load(path: Path) -> dict[str, object]:
    """Parse a stage file.

    Raises:
        InputError: it cannot be read, is no YAML, or is no block of keys.
    """
    try:
        document = yaml.load(regular_text(path), _UniqueKeyLoader)
    except OSError as error:
        raise InputError(
            f"stage configuration {path} cannot be read: {error.strerror}; give another file."
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML passes on what a scalar's own constructor raises, as for the date 2020-13-45.
        problem = " ".join(str(error).split())
        raise InputError(
            f"stage configuration {path} is not valid YAML: {problem}; mend the place that this names."
        ) from error
    if not isinstance(document, dict):
        raise InputError(
            f"stage configuration {path} must be a block with the key {STAGE} or {LEGACY_STAGE}."
        )
    return document


def form_of(document: Mapping[str, object], source: str) -> str:
    """The key that holds the stages, which tells the two forms apart.

    Raises:
        InputError: neither or both are there.
    """
    forms = [form for form in (STAGE, LEGACY_STAGE) if form in document]
    if len(forms) != 1:
        found, remedy = ("both", "remove one") if forms else ("neither", f"list the stage under {STAGE}")
        raise InputError(
            f"stage configuration {source} has {found} of {STAGE} (vLLM-Omni 0.30) and {LEGACY_STAGE} "
            f"(0.24): it needs one of them; {remedy}."
        )
    return forms[0]


def settings(document: Mapping[str, object], source: str, blocks: Set[str]) -> Iterator[Setting]:
    """Every value of a file with one stage.

    Args:
        blocks: the places that hold further keys; a block elsewhere is a value.

    Raises:
        InputError: not exactly one stage, or something else than a block where one belongs.
    """
    form = form_of(document, source)
    stages = document[form]
    if not isinstance(stages, list) or not all(isinstance(stage, dict) for stage in stages):
        raise InputError(f"{form} in {source} must be a list of stages; begin it with - stage_id: 0.")
    if len(stages) != 1:
        names = ", ".join(str(_stage_name(stage, i)) for i, stage in enumerate(stages)) or "none"
        raise InputError(
            f"{form} in {source} has {len(stages)} stages ({names}): omni-neuron runs pipelines of one "
            "diffusion stage; leave that one."
        )
    shared = {key: value for key, value in document.items() if key != form}
    yield from _walk(shared, "", "", source, blocks)
    yield from _walk(stages[0], form, f"{form}[0]", source, blocks)


def _stage_name(stage: Mapping[str, object], index: int) -> object:
    engine_args = stage.get("engine_args")
    inner = engine_args if isinstance(engine_args, Mapping) else {}
    return stage.get("model_stage") or inner.get("model_stage") or stage.get("stage_type") or index


def _walk(
    block: Mapping[Any, object], place: str, shown: str, source: str, blocks: Set[str]
) -> Iterator[Setting]:
    for key, value in block.items():
        inner = f"{place}.{key}".lstrip(".")
        inner_shown = f"{shown}.{key}".lstrip(".")
        if inner not in blocks and inner not in _TRANSPARENT:
            yield Setting(inner, inner_shown, value)
        elif isinstance(value, dict):
            yield from _walk(value, place if inner in _TRANSPARENT else inner, inner_shown, source, blocks)
        elif value is not None:
            raise InputError(f"{inner_shown} is {as_written(value)} in {source}: it must be a block of keys.")
