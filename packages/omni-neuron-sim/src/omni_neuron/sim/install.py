"""Giving the simulator's modules the name `nki`, for code that says `import nki`; only when asked."""

import importlib
import importlib.util
import sys
from types import TracebackType

_OURS = "omni_neuron.sim.nki"
_MODULES = (
    "",
    ".language",
    ".isa",
    ".isa.constants",
    ".collectives",
    ".typing",
    ".simulator",
    ".compiler",
    ".compiler.kernel_builder",
)


class Installed:
    """The modules are in place; `uninstall`, or the end of a `with`, takes them out again."""

    def uninstall(self) -> None:
        for suffix in _MODULES:
            module = sys.modules.get(f"nki{suffix}")
            if module is not None and module.__name__.startswith("omni_neuron.sim."):
                del sys.modules[f"nki{suffix}"]

    def __enter__(self) -> "Installed":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.uninstall()


def install() -> Installed:
    """Make `import nki` find the simulator. RuntimeError where another `nki` is loaded or could be.

    An empty placeholder distribution does not count: it has no module of that name.
    """
    loaded = sys.modules.get("nki")
    if loaded is None and importlib.util.find_spec("nki") is not None:
        raise RuntimeError(
            "A package nki is installed: kernels compile with it, and it has a simulator of its own."
        )
    if loaded is not None and loaded.__name__ != _OURS:
        raise RuntimeError(
            f"A module nki is loaded already, from {getattr(loaded, '__file__', 'somewhere')}."
        )
    for suffix in _MODULES:
        name = "omni_neuron.sim.nki.isa.enums" if suffix == ".isa.constants" else f"{_OURS}{suffix}"
        sys.modules[f"nki{suffix}"] = importlib.import_module(name)
    return Installed()
