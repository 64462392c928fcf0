"""Look-ups of private members of the Neuron wheels that say which build lacks them."""

from importlib import import_module
from types import ModuleType
from typing import Any

from omni_neuron.runtime.errors import SetupError
from omni_neuron.runtime.wheels import NEURON_INDEX, installed_version


def wheel_member(wheel: str, module: str, member: str, remedy: str) -> Any:
    """`module.member` of an installed wheel.

    Raises SetupError with the wheel's version, the missing name and the remedy; a wheel whose import fails
    inside is reported with its own message and not as a missing name.
    """
    try:
        return getattr(import_module(module), member)
    except (ImportError, AttributeError) as error:
        version = installed_version(wheel) or "(not installed)"
        raise SetupError(
            f"{wheel} {version} does not provide {module}.{member} ({error}): {remedy}."
        ) from error


def installed_nki() -> ModuleType:
    """The module `nki` of the installed compiler of kernels, with the submodules that kernels use loaded."""
    remedy = f'run: pip install --extra-index-url {NEURON_INDEX} "nki>=0.6"'
    for submodule in ("language", "isa", "collectives"):
        wheel_member("nki", f"nki.{submodule}", "__name__", remedy)
    return import_module("nki")
