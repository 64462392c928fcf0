"""The command line over the stage file, key by key."""

from __future__ import annotations

from collections.abc import Mapping

from omni_neuron.platform.stage_config.config import StageConfig, check_layout, written_indices
from omni_neuron.platform.stage_config.reading import read_value
from omni_neuron.platform.stage_config.table import BY_NAME, nearest_name
from omni_neuron.runtime.errors import InputError


def apply_overrides(config: StageConfig, overrides: Mapping[str, object]) -> tuple[StageConfig, list[str]]:
    """Set keys over those of the file, and check that the result fits together.

    Args:
        overrides: values by key, in the names of the table; None stands for a flag that was not given.

    Returns:
        the new configuration, and one sentence for every value of the file that changed, such as
        `tensor_parallel_size: 2 (file) -> 4 (--tp)`.

    Raises:
        InputError: an unknown key, a value of another kind, or settings that contradict each other.
    """
    values = dict(config.values)
    sentences: list[str] = []
    for name, given in overrides.items():
        key = BY_NAME.get(name)
        if key is None:
            nearest = nearest_name(name)
            hint = f"the nearest is {nearest}." if nearest is not None else "remove it."
            raise InputError(f"override {name} (value {given!r}) is not a known key: {hint}")
        if given is None:
            continue
        flag = key.flag or "override"
        value = read_value(key, given, f"{key.name} ({flag}) is", "the command line")
        if name in values and values[name] != value:
            sentences.append(f"{name}: {_shown(values[name])} (file) -> {_shown(value)} ({flag})")
        values[name] = value
    result = StageConfig(values, config.source)
    check_layout(result)
    return result, sentences


def _shown(value: object) -> str:
    return written_indices(value) if isinstance(value, tuple) else str(value)
