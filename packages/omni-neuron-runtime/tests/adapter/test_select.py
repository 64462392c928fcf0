from pathlib import Path
from typing import Any

import pytest

from omni_neuron.runtime.adapter.select import choose_variant, get_adapter
from omni_neuron.runtime.errors import SetupError

LITE = "VLLM_NEURON_LIBTORCH_NEURONX_LITE"


@pytest.fixture
def hardware(dev: Path) -> Path:
    (dev / "neuron0").touch()
    return dev


def add_torch_neuron(site: Any) -> None:
    site.add("torch-neuronx", "2.13.3.0", {"torch_neuronx/__init__.py": "", "torch_neuronx/nki_hop.py": ""})


def test_without_a_device_the_host_is_used(dev: Path, site: Any) -> None:
    site.add_neuron()
    assert choose_variant(dev, site.path) == "cpu"


def test_cpu_mode_wins_over_the_device(hardware: Path, site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add_neuron()
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    assert choose_variant(hardware, site.path) == "cpu"


def test_one_object_per_process(dev: Path) -> None:
    get_adapter(dev).register_replica_groups("shared", [[0]])
    assert get_adapter(dev).replica_groups("shared") == ((0,),)


def test_the_installed_library_decides(hardware: Path, site: Any) -> None:
    site.add_placeholder("libtorch-neuronx-lite")
    add_torch_neuron(site)
    assert choose_variant(hardware, site.path) == "torch_neuron"


def test_lite_before_torch_neuron_unless_told_otherwise(
    hardware: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add_neuron()
    add_torch_neuron(site)
    assert choose_variant(hardware, site.path) == "lite"
    monkeypatch.setenv(LITE, "0")
    assert choose_variant(hardware, site.path) == "torch_neuron"
    monkeypatch.setenv(LITE, "1")
    assert choose_variant(hardware, site.path) == "lite"


def test_a_library_that_was_asked_for_must_be_there(
    hardware: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_torch_neuron(site)
    monkeypatch.setenv(LITE, "1")
    with pytest.raises(SetupError, match=f"{LITE}=1, but libtorch-neuronx-lite is absent"):
        choose_variant(hardware, site.path)


def test_a_device_without_any_library_is_an_error(hardware: Path, site: Any) -> None:
    site.add_placeholder("libtorch-neuronx-lite", "libtorch-neuronx-lite")
    with pytest.raises(SetupError, match="lite is placeholder and torch-neuronx is absent: run: pip install"):
        choose_variant(hardware, site.path)
