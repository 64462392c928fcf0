"""Builds of libtorch-neuronx-lite that look installed and still cannot run here.

The container of SDK 2.32 ships build 2.11.0.1.0.1284, which lacks the private module `_compiler` that every
native compile goes through; 2.11.0.1.0.2651 is the first build known to have it. A Lite wheel is also made
for one release of torch, which the first two numbers of its version name.
"""

from pathlib import PurePosixPath

from omni_neuron.runtime.versions import minor
from omni_neuron.runtime.wheels import (
    NEURON_INDEX,
    SearchPath,
    find_distribution,
    inspect_wheel,
    installed_version,
)

LITE_WHEEL = "libtorch-neuronx-lite"
FIRST_GOOD_BUILD = "2.11.0.1.0.2651"


def lite_problem(path: SearchPath = None) -> str | None:
    """Why the installed Lite wheel cannot be used, without a full stop; None when it is sound or not real."""
    wheel = inspect_wheel(LITE_WHEEL, path)
    if not wheel.is_real or wheel.version is None:
        return None
    installed = f"{LITE_WHEEL} {wheel.version}"
    if not _has_compiler(path):
        return f"{installed} has no module _compiler, like the build in the container of SDK 2.32"
    torch_version = installed_version("torch", path)
    if torch_version and minor(torch_version) != minor(wheel.version):
        return f"{installed} is made for another release of torch than the installed {torch_version}"
    return None


def lite_remedy(path: SearchPath = None) -> str:
    """The command that installs a Lite build which fits the installed torch."""
    torch_version = installed_version("torch", path)
    release = f",=={'.'.join(map(str, minor(torch_version)))}.*" if torch_version else ""
    return f'run: pip install --extra-index-url {NEURON_INDEX} "{LITE_WHEEL}>={FIRST_GOOD_BUILD}{release}"'


def _has_compiler(path: SearchPath) -> bool:
    """Whether the list of installed files names the module; an editable source tree has no such list."""
    found = find_distribution(LITE_WHEEL, path)
    files = [PurePosixPath(file) for file in (found.files or ())] if found else []
    package = [file for file in files if file.parts[0] == "libtorch_neuronx_lite"]
    return not package or any(file.parts[1].split(".")[0] == "_compiler" for file in package)
