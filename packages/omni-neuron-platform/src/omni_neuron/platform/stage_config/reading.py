"""From a stage file to a `StageConfig`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omni_neuron.platform.stage_config.config import StageConfig
from omni_neuron.platform.stage_config.document import Setting, form_of, load, settings
from omni_neuron.platform.stage_config.key import Feature, Key
from omni_neuron.platform.stage_config.table import blocks_of, by_place, nearest_place
from omni_neuron.platform.stage_config.values import as_written
from omni_neuron.runtime.errors import InputError


def read_stage_config(path: str | Path) -> StageConfig:
    """Read a stage file in vLLM-Omni 0.30's deploy form or in the form of 0.24.

    Whether the settings fit together is checked later (`apply_overrides`, `to_deploy_dict`), since the
    command line may still change them.

    Raises:
        InputError: the file cannot be read, or holds a key or a value that nothing here acts on.
    """
    path = Path(path)
    document = load(path)
    source = str(path)
    form = form_of(document, source)
    table = by_place(form)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for setting in settings(document, source, blocks_of(form)):
        entry = table.get(setting.place)
        if entry is None:
            raise InputError(_unknown(setting, source, form))
        if isinstance(entry, Feature):
            if not entry.asks_for_nothing(setting.value):
                raise InputError(
                    f"{setting.shown} is {as_written(setting.value)} in {source}: {entry.reason}; "
                    f"{entry.remedy}."
                )
            continue
        if setting.value is None:
            continue
        if entry.name in values:
            raise InputError(
                f"{setting.shown} and {origins[entry.name]} in {source} set the same thing; "
                "remove one of them."
            )
        values[entry.name] = read_value(entry, setting.value, f"{setting.shown} is", source)
        origins[entry.name] = setting.shown
    return StageConfig(values, source)


def read_value(key: Key, value: object, subject: str, source: str) -> Any:
    """One value of a key.

    Args:
        subject: how the sentence about a bad value begins, up to the value.
        source: where it comes from.

    Raises:
        InputError: the value is of another kind.
    """
    try:
        return key.kind.parse(value)
    except ValueError:
        raise InputError(
            f"{subject} {as_written(value)} in {source}: it must be {key.kind.rule}; change it, "
            "or leave it out."
        ) from None


def _unknown(setting: Setting, source: str, form: str) -> str:
    nearest = nearest_place(setting.place, form)
    hint = f"the nearest is {nearest}." if nearest is not None else "remove it."
    return f"{setting.shown} (value {as_written(setting.value)}) in {source} is not a known key: {hint}"
