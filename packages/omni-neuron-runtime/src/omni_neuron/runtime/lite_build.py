"""Builds of libtorch-neuronx-lite that look installed and still cannot run here.

The container of SDK 2.32 ships build 2.11.0.1.0.1284, which lacks the private module `_compiler` that every
native compile goes through; 2.11.0.1.0.2651 is the first build known to have it. A Lite wheel is also made for
one release of torch, and is read from the first two numbers of its version.
"""

from omni_neuron.runtime.wheels import (
    NEURON_INDEX,
    SearchPath,
    find_distribution,
    inspect_wheel,
    installed_version,
)

LITE_WHEEL = "libtorch-neuronx-lite"
FIRST_GOOD_BUILD = "2.11.0.1.0.2651"
REMEDY = f'run: pip install --extra-index-url {NEURON_INDEX} "{LITE_WHEEL}>={FIRST_GOOD_BUILD}"'


def lite_problem(path: SearchPath = None) -> str | None:
    """One sentence on why the installed Lite wheel cannot be used, None when it is sound or not real."""
    wheel = inspect_wheel(LITE_WHEEL, path)
    found = find_distribution(LITE_WHEEL, path)
    if not wheel.is_real or found is None or wheel.version is None:
        return None
    files = found.files or ()
    if files and not any(
        file.match("libtorch_neuronx_lite/_compiler*") or "_compiler" in file.parts for file in files
    ):
        return f"{LITE_WHEEL} {wheel.version} lacks the module _compiler (as the build of SDK 2.32's container does)."
    torch_version = installed_version("torch", path)
    if torch_version and minor(torch_version) != minor(wheel.version):
        return f"{LITE_WHEEL} {wheel.version} is built for torch {_dotted(wheel.version)}, but torch {torch_version} is installed."
    return None


def minor(version: str) -> tuple[int, int]:
    """First two numbers of a version: (2, 11) for 2.11.0.1.0.2651."""
    major, second, *_ = version.split(".")
    return int(major), int(second)


def _dotted(version: str) -> str:
    return ".".join(map(str, minor(version)))
