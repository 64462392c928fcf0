from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from omni_neuron.kernels import operator, ranks
from omni_neuron.kernels.operator import load

# how long an example takes says more about the host than about the code
settings.register_profile("kernels", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kernels")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """CPU mode with the interpreter; the sources of kernels, in the order of their launches."""
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    sources: list[str] = []

    def recorded(source: str) -> Any:
        sources.append(source)
        return load(source)

    for module in (operator, ranks):
        monkeypatch.setattr(module, "load", recorded)
    return sources
