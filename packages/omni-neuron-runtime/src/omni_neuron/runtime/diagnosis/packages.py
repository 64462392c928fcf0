"""Python and the packages of a generation: present, and fitting each other.

Only metadata is read: nothing of torch or vllm is imported.
"""

import re
import sys

from omni_neuron.runtime.diagnosis.check import Check, fail, note, ok
from omni_neuron.runtime.versions import minor, public
from omni_neuron.runtime.wheels import SearchPath, find_distribution, installed_version

FIRST_PYTHON = (3, 11)
FIRST_UNSUPPORTED_PYTHON = (3, 14)
FIRST_ENGINE = (0, 29)
FIRST_UNSUPPORTED_ENGINE = (0, 31)

NEEDED = (
    "omni-neuron-runtime",
    "omni-neuron-distributed",
    "omni-neuron-kernels",
    "omni-neuron-platform",
    "omni-neuron-wan22",
)
OPTIONAL = ("omni-neuron", "omni-neuron-sim")
LIBRARIES = ("diffusers", "transformers")
INSTALL = (
    "in a clone run: uv sync; with the wheels of uv build --all-packages --wheel run: VLLM_TARGET_DEVICE="
    'empty VLLM_VERSION_OVERRIDE=0.30.0 pip install --no-binary vllm --find-links dist "omni-neuron[wan22]"'
)

_TORCH_PIN = re.compile(r"torch\s*\(?\s*==\s*([\w.]+)")


def check_python(version: tuple[int, int] | None = None) -> Check:
    """vllm-omni, and we with it, run on Python 3.11 to 3.13; some SDK images have 3.14."""
    version = version or (sys.version_info.major, sys.version_info.minor)
    found = ".".join(map(str, version))
    if FIRST_PYTHON <= version < FIRST_UNSUPPORTED_PYTHON:
        return ok("python", found)
    return fail(
        "python", f"{found}, but vllm-omni needs 3.11 to 3.13", "make an environment with Python 3.13"
    )


def check_ours(path: SearchPath = None) -> Check:
    """Our own packages: those that `generate` needs, all of one version."""
    versions = {name: installed_version(name, path) for name in (*NEEDED, *OPTIONAL)}
    missing = [name for name in NEEDED if versions[name] is None]
    if missing:
        return fail("omni-neuron", f"not installed: {', '.join(missing)}", INSTALL)
    installed = {name: version for name, version in versions.items() if version is not None}
    if len(set(installed.values())) > 1:
        listing = ", ".join(f"{name} {version}" for name, version in installed.items())
        return fail("omni-neuron", f"the versions differ: {listing}", f"{INSTALL} --upgrade")
    return ok("omni-neuron", f"{installed[NEEDED[0]]} ({', '.join(installed)})")


def check_engine(path: SearchPath = None) -> Check:
    """vllm and vllm-omni: the same minor version, and one that the plugin knows."""
    vllm, omni = installed_version("vllm", path), installed_version("vllm-omni", path)
    missing = [name for name, version in (("vllm", vllm), ("vllm-omni", omni)) if version is None]
    if vllm is None or omni is None:
        return fail("engine", f"not installed: {', '.join(missing)}", INSTALL)
    pair = f"vllm {vllm}, vllm-omni {omni}"
    if minor(vllm) != minor(omni):
        number = ".".join(map(str, minor(omni)))
        return fail(
            "engine", f"{pair}: the minor versions differ", f"install vllm {number} beside vllm-omni {number}"
        )
    if not FIRST_ENGINE <= minor(vllm) < FIRST_UNSUPPORTED_ENGINE:
        return fail(
            "engine", f"{pair}: only 0.29 and 0.30 are supported", "install vllm 0.30.0 and vllm-omni 0.30.0"
        )
    return ok("engine", pair)


def check_torch(path: SearchPath = None) -> Check:
    """torch and torchvision are a pair: torchvision's metadata names the one torch that it was built for."""
    torch, vision = installed_version("torch", path), find_distribution("torchvision", path)
    if torch is None:
        return fail("torch", "not installed", INSTALL)
    if vision is None:
        return fail("torch", f"torch {torch} without torchvision, which vllm-omni imports", INSTALL)
    pair = f"torch {torch}, torchvision {vision.version}"
    pins = [match[1] for line in vision.requires or () if (match := _TORCH_PIN.match(line))]
    if not pins:
        return note("torch", f"{pair}: torchvision does not say which torch it was built for")
    if public(pins[0]) != public(torch):
        return fail("torch", f"{pair}, which was built for torch {pins[0]}", f"install torch {pins[0]}")
    return ok("torch", pair)


def check_libraries(path: SearchPath = None) -> Check:
    """The model libraries that the pipelines import."""
    versions = {name: installed_version(name, path) for name in LIBRARIES}
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        return fail("libraries", f"not installed: {', '.join(missing)}", INSTALL)
    return ok("libraries", ", ".join(f"{name} {version}" for name, version in versions.items()))
