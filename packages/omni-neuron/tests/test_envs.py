import pytest

from omni_neuron.cli import envs


def test_debug_is_off_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMNI_NEURON_DEBUG", raising=False)
    assert envs.debug() is False
    monkeypatch.setenv("OMNI_NEURON_DEBUG", "1")
    assert envs.debug() is True
