"""Neuron device nodes. The driver makes one per chip: /dev/neuron0, /dev/neuron1, ..."""

import re
from pathlib import Path

DEVICE_FOLDER = Path("/dev")
_NODE = re.compile(r"neuron(\d+)")


def device_nodes(folder: Path = DEVICE_FOLDER) -> tuple[Path, ...]:
    """The device nodes in the order of their numbers; empty where the driver is not loaded."""
    numbered = [
        (int(match[1]), path) for path in folder.glob("neuron*") if (match := _NODE.fullmatch(path.name))
    ]
    return tuple(path for _, path in sorted(numbered))


def chip_count(folder: Path = DEVICE_FOLDER) -> int:
    """How many Neuron chips this host shows."""
    return len(device_nodes(folder))
