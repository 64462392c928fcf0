import os
from pathlib import Path
from typing import Any

import pytest

from omni_neuron.runtime.errors import InputError, SetupError
from omni_neuron.runtime.mode import ModeKind, command_mode, detect_mode, enter_command_mode

CPU_MODE = "VLLM_NEURON_CPU_MODE"


def test_a_device_means_hardware(dev: Path) -> None:
    (dev / "neuron0").touch()
    mode = detect_mode(dev)
    assert mode.kind is ModeKind.HARDWARE
    assert mode.is_hardware
    assert mode.is_active
    assert "1 Neuron device node in" in mode.reason


def test_the_variable_wins_over_the_device(dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (dev / "neuron0").touch()
    monkeypatch.setenv(CPU_MODE, "1")
    assert detect_mode(dev).is_cpu
    monkeypatch.setenv(CPU_MODE, "0")
    assert detect_mode(dev).is_hardware


def test_neither_means_inactive(dev: Path) -> None:
    mode = detect_mode(dev)
    assert mode.kind is ModeKind.INACTIVE
    assert not mode.is_active
    assert str(dev) in mode.reason


def test_compilation_only_is_inactive_and_excludes_cpu_mode(
    dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (dev / "neuron0").touch()
    monkeypatch.setenv("VLLM_NEURON_CPU_COMPILE", "1")
    assert not detect_mode(dev).is_active
    with pytest.raises(SetupError, match="unset it to generate"):
        command_mode(dev)
    monkeypatch.setenv(CPU_MODE, "1")
    with pytest.raises(InputError, match="exclude each other"):
        detect_mode(dev)


def test_a_command_falls_back_to_the_cpu_and_says_so(dev: Path, site: Any) -> None:
    site.add_placeholder("nki")
    assert command_mode(dev, site.path).is_cpu
    assert CPU_MODE not in os.environ
    line = enter_command_mode(dev, site.path)
    assert line is not None
    assert "\n" not in line
    assert os.environ[CPU_MODE] == "1"
    assert detect_mode(dev).is_cpu
    assert enter_command_mode(dev, site.path) is None


@pytest.mark.parametrize(("given", "route"), [("", "neuron_native"), ("neuron", "neuron")])
def test_a_command_on_hardware_takes_the_native_route(
    dev: Path, site: Any, monkeypatch: pytest.MonkeyPatch, given: str, route: str
) -> None:
    monkeypatch.setenv("VLLM_NEURON_BACKEND", given)
    site.add_neuron()
    (dev / "neuron0").touch()
    assert enter_command_mode(dev, site.path) is None
    assert CPU_MODE not in os.environ
    assert os.environ["VLLM_NEURON_BACKEND"] == route


def test_a_neuron_host_without_a_visible_device_is_refused(
    dev: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("nki", "0.7.0", {"nki/__init__.py": "", "nki/language.py": ""})
    with pytest.raises(SetupError, match=f"nki 0.7.0.*set {CPU_MODE}=1"):
        enter_command_mode(dev, site.path)
    assert CPU_MODE not in os.environ
    monkeypatch.setenv(CPU_MODE, "1")
    assert enter_command_mode(dev, site.path) is None
    assert command_mode(dev, site.path).is_cpu


def test_a_forbidden_cpu_is_respected(dev: Path, site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU_MODE, "0")
    with pytest.raises(SetupError, match=f"{CPU_MODE}=0 forbids the CPU"):
        enter_command_mode(dev, site.path)


@pytest.mark.parametrize(
    "name", ["NKI_SIMULATOR", "VLLM_NEURON_DISABLE_NKI_KERNELS", "NEURON_LOGICAL_NC_CONFIG"]
)
def test_a_command_checks_what_workers_read_later(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    monkeypatch.setenv(name, "yes")
    with pytest.raises(InputError, match=f"{name}='yes' is not valid"):
        enter_command_mode(tmp_path)
