import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from omni_neuron.runtime.commands import doctor
from omni_neuron.runtime.diagnosis.report import Diagnosis, diagnose

SCRIPT = """
import sys, argparse
from omni_neuron.runtime.commands import doctor
parser = argparse.ArgumentParser()
doctor.add_arguments(parser)
doctor.run(parser.parse_args([]))
heavy = sorted({"torch", "vllm", "vllm_omni", "diffusers", "numpy"} & set(sys.modules))
print(heavy, file=sys.stderr)
"""


@pytest.fixture
def complete(dev: Path, site: Any, tmp_path: Path) -> Diagnosis:
    site.add_generation()
    return diagnose(dev, tmp_path, site.path)


@pytest.fixture
def lacking(dev: Path, site: Any, tmp_path: Path) -> Diagnosis:
    return diagnose(dev, tmp_path, site.path)


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    doctor.add_arguments(parser)
    return parser.parse_args(given)


def test_the_status_is_zero_only_when_a_generation_could_run(
    complete: Diagnosis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "diagnose", lambda: complete)
    assert doctor.run(arguments()) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "A generation can run on the CPU."


def test_every_failure_is_shown_with_its_remedy(
    lacking: Diagnosis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "diagnose", lambda: lacking)
    assert doctor.run(arguments()) == 1
    text = capsys.readouterr().out
    assert text.splitlines()[-1].startswith("A generation cannot run")
    for check in lacking.checks:
        assert check.finding in text
        assert check.remedy is None or f"-> {check.remedy}" in text


def test_json_is_one_line(
    lacking: Diagnosis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "diagnose", lambda: lacking)
    assert doctor.run(arguments("--json")) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0]) == lacking.as_dict()


def test_it_imports_nothing_heavy() -> None:
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"
    # Metadata alone takes a fifth of a second; importing torch takes several.
    assert time.monotonic() - started < 10
