from pathlib import Path
from typing import Any

import pytest

from omni_neuron.runtime.diagnosis import machine
from omni_neuron.runtime.diagnosis.check import Check, Status
from omni_neuron.runtime.mode import Mode, ModeKind

HARDWARE = Mode(ModeKind.HARDWARE, "A device.")
CPU = Mode(ModeKind.CPU, "No device.")


def failures(checks: list[Check]) -> list[str]:
    return [check.name for check in checks if check.status is Status.FAIL]


def test_a_refused_mode_carries_its_remedy(dev: Path, site: Any) -> None:
    site.add_neuron()
    mode, check = machine.check_mode(dev, site.path)
    assert mode is None
    assert check.status is Status.FAIL
    assert check.remedy is not None
    assert "VLLM_NEURON_CPU_MODE=1" in check.remedy


def test_on_the_cpu_no_wheel_is_needed(site: Any) -> None:
    site.add_placeholder("nki")
    checks = machine.check_wheels(CPU, site.path)
    assert failures(checks) == []
    assert [check.name for check in checks if check.status is Status.NOTE] == ["nki"]


def test_on_hardware_the_wheels_must_be_real(site: Any) -> None:
    site.add_placeholder("nki")
    checks = machine.check_wheels(HARDWARE, site.path)
    assert failures(checks) == ["vllm-neuron", "neuronx-cc", "nki", "hardware library"]


def test_a_complete_neuron_host(site: Any) -> None:
    site.add("torch", "2.13.0")
    site.add_neuron()
    assert failures(machine.check_wheels(HARDWARE, site.path)) == []


def test_two_hardware_libraries_are_noted(site: Any) -> None:
    site.add_neuron()
    site.add("torch-neuronx", "2.13.3", {"torch_neuronx/__init__.py": "", "torch_neuronx/utils.py": ""})
    checks = machine.check_wheels(HARDWARE, site.path)
    assert failures(checks) == []
    assert any("beside Lite" in check.finding for check in checks)


@pytest.mark.parametrize(("mode", "status"), [(HARDWARE, Status.FAIL), (CPU, Status.NOTE)])
def test_the_lite_trap(site: Any, mode: Mode, status: Status) -> None:
    site.add(
        "libtorch-neuronx-lite",
        "2.11.0.1.0.1284",
        {"libtorch_neuronx_lite/__init__.py": "", "libtorch_neuronx_lite/envs.py": ""},
    )
    last = machine.check_wheels(mode, site.path)[-1]
    assert last.status is status
    assert "_compiler" in last.finding


def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failures(machine.check_environment(CPU)) == []
    monkeypatch.setenv("NEURON_VISIBLE_DEVICES", "all")
    monkeypatch.setenv("NKI_SIMULATOR", "on")
    findings = [check.finding for check in machine.check_environment(None)]
    assert len(findings) == 2
    assert any("NEURON_VISIBLE_DEVICES='all'" in finding for finding in findings)


def test_visible_cores_stand_in_the_way_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_RT_VISIBLE_CORES", "0-3")
    assert failures(machine.check_environment(HARDWARE)) == ["environment"]
    assert failures(machine.check_environment(CPU)) == []


def test_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.check_shared_memory(CPU, tmp_path / "absent").status is Status.FAIL
    assert machine.check_shared_memory(CPU, tmp_path).status is Status.OK
    monkeypatch.setattr(machine, "SHM_NEEDED_HARDWARE", 1 << 60)
    assert machine.check_shared_memory(HARDWARE, tmp_path).status is Status.FAIL
    assert machine.check_shared_memory(CPU, tmp_path).status is Status.OK
