"""Which Neuron wheels are installed, and which of them are placeholders.

The public package index holds a placeholder under each of these names: a distribution whose only file beside
its metadata is one `__init__.py`, at times in a folder with a hyphen, which cannot even be imported.
The state is decided from the installed files and not from the version, so that a new placeholder or a new
release needs no change here: a wheel is real when it brings any code file beyond a lone `__init__.py`,
or when it was installed from a source tree in editable form, which no placeholder is.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import Distribution
from importlib.metadata import distributions as installed_distributions
from pathlib import PurePosixPath

NEURON_INDEX = "https://pip.repos.neuron.amazonaws.com"
NEURON_WHEELS = (
    "vllm-neuron",
    "libtorch-neuronx-lite",
    "torch-neuronx",
    "neuronx-cc",
    "nki",
    "libneuronxla",
)
_CODE = {".py", ".pyc", ".so", ".pyd"}


class WheelState(Enum):
    REAL = "real"
    PLACEHOLDER = "placeholder"
    ABSENT = "absent"


@dataclass(frozen=True)
class Wheel:
    """One Neuron wheel as it is installed; `version` is None exactly when it is absent."""

    name: str
    state: WheelState
    version: str | None = None

    @property
    def is_real(self) -> bool:
        return self.state is WheelState.REAL


SearchPath = Sequence[str] | None


def find_distribution(name: str, path: SearchPath = None) -> Distribution | None:
    """The installed distribution of that name, searched on `sys.path` unless `path` says otherwise."""
    found = (
        installed_distributions(name=name)
        if path is None
        else installed_distributions(name=name, path=list(path))
    )
    return next(iter(found), None)


def installed_version(name: str, path: SearchPath = None) -> str | None:
    """Version of an installed distribution, None where it is absent."""
    found = find_distribution(name, path)
    return None if found is None else found.version


def inspect_wheel(name: str, path: SearchPath = None) -> Wheel:
    """State and version of one Neuron wheel."""
    found = find_distribution(name, path)
    if found is None:
        return Wheel(name, WheelState.ABSENT)
    state = WheelState.REAL if _is_editable(found) or _brings_code(found) else WheelState.PLACEHOLDER
    return Wheel(name, state, found.version)


def inspect_wheels(path: SearchPath = None) -> tuple[Wheel, ...]:
    """State of every Neuron wheel, in the order of `NEURON_WHEELS`."""
    return tuple(inspect_wheel(name, path) for name in NEURON_WHEELS)


def real_wheels(path: SearchPath = None) -> tuple[Wheel, ...]:
    return tuple(wheel for wheel in inspect_wheels(path) if wheel.is_real)


def _brings_code(found: Distribution) -> bool:
    files = [PurePosixPath(file) for file in found.files or ()]
    code = [file for file in files if file.suffix in _CODE and "__pycache__" not in file.parts]
    return len(code) > 1 or any(file.name != "__init__.py" for file in code)


def _is_editable(found: Distribution) -> bool:
    origin = found.read_text("direct_url.json")
    return bool(origin and json.loads(origin).get("dir_info", {}).get("editable"))
