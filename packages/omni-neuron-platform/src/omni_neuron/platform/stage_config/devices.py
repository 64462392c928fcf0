"""Device lists such as `0-3,8`, which vLLM-Omni would split at the commas only."""

from __future__ import annotations

import re

from omni_neuron.platform.stage_config.values import Kind

_PART = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")  # no host has more devices than four digits can count


def expand_devices(value: object) -> tuple[int, ...]:
    """Expand `"0-3,8"` (or the single number of a file) to `(0, 1, 2, 3, 8)`.

    Raises:
        ValueError: not a list of device numbers and rising ranges, or a device named twice.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return (value,)
    if not isinstance(value, str):
        raise ValueError(value)
    devices: list[int] = []
    for part in value.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(value)
        first = int(match[1])
        last = int(match[2]) if match[2] is not None else first
        if last < first:
            raise ValueError(value)
        devices.extend(range(first, last + 1))
    if len(set(devices)) != len(devices):
        raise ValueError(value)
    return tuple(devices)


def written_devices(devices: tuple[int, ...]) -> str:
    """The list in the only form that every part of vLLM-Omni reads: numbers and commas."""
    return ",".join(str(device) for device in devices)


DEVICES = Kind('device numbers and rising ranges without repetition, such as "0-3,8"', expand_devices)
