from pathlib import Path
from typing import Any

import pytest

from omni_neuron.runtime.diagnosis.report import diagnose


def test_an_ordinary_machine_with_everything_can_generate(dev: Path, site: Any, tmp_path: Path) -> None:
    site.add_generation()
    diagnosis = diagnose(dev, tmp_path, site.path)
    assert diagnosis.can_generate
    assert diagnosis.mode is not None
    assert diagnosis.mode.is_cpu


@pytest.mark.parametrize("absent", ["omni_neuron_wan22", "vllm", "torchvision"])
def test_one_lack_is_enough(dev: Path, site: Any, tmp_path: Path, absent: str) -> None:
    site.add_generation()
    info = next(path for path in site.folder.iterdir() if path.name.startswith(f"{absent}-"))
    info.rename(site.folder / "removed")
    assert not diagnose(dev, tmp_path, site.path).can_generate


def test_hidden_devices_of_a_neuron_host_refuse(dev: Path, site: Any, tmp_path: Path) -> None:
    site.add_generation()
    site.add_neuron()
    diagnosis = diagnose(dev, tmp_path, site.path)
    assert diagnosis.mode is None
    assert not diagnosis.can_generate
    (dev / "neuron0").touch()
    found = diagnose(dev, tmp_path, site.path)
    assert found.can_generate
    assert found.as_dict()["mode"] == {"kind": "hardware", "reason": f"1 Neuron device node in {dev}."}


def test_the_form_for_machines_holds_everything(dev: Path, site: Any, tmp_path: Path) -> None:
    diagnosis = diagnose(dev, tmp_path, site.path)
    as_dict = diagnosis.as_dict()
    assert as_dict["can_generate"] is False
    checks = as_dict["checks"]
    assert isinstance(checks, list)
    assert len(checks) == len(diagnosis.checks)
    assert {"name", "status", "finding", "remedy"} == set(checks[0])
