from typing import Any

import pytest

from omni_neuron.runtime.diagnosis.check import Status
from omni_neuron.runtime.diagnosis.packages import (
    check_engine,
    check_libraries,
    check_ours,
    check_python,
    check_torch,
)


@pytest.mark.parametrize(
    ("version", "status"),
    [((3, 10), "fail"), ((3, 11), "ok"), ((3, 13), "ok"), ((3, 14), "fail"), ((4, 0), "fail")],
)
def test_python(version: tuple[int, int], status: str) -> None:
    assert check_python(version).status is Status(status)


def test_a_complete_environment(site: Any) -> None:
    site.add_generation()
    for check in (check_ours, check_engine, check_torch, check_libraries):
        assert check(site.path).status is Status.OK, check(site.path)


def test_an_empty_environment(site: Any) -> None:
    for check in (check_ours, check_engine, check_torch, check_libraries):
        found = check(site.path)
        assert found.status is Status.FAIL
        assert found.remedy is not None
    assert "omni-neuron-wan22" in check_ours(site.path).finding
    assert "vllm, vllm-omni" in check_engine(site.path).finding


def test_our_packages_are_of_one_version(site: Any) -> None:
    site.add_generation()
    site.add("omni-neuron", "0.2.0")
    found = check_ours(site.path)
    assert found.status is Status.FAIL
    assert "omni-neuron 0.2.0" in found.finding


@pytest.mark.parametrize(
    ("vllm", "omni", "status"),
    [
        ("0.30.0", "0.30.0", "ok"),
        ("0.29.0", "0.29.0rc1", "ok"),
        ("0.30.1+empty", "0.30.0", "ok"),
        ("0.29.0", "0.30.0", "fail"),
        ("0.28.0", "0.28.0", "fail"),
        ("0.31.0", "0.31.0", "fail"),
        ("1.29.0", "1.29.0", "fail"),
    ],
)
def test_the_engine_is_a_known_pair(site: Any, vllm: str, omni: str, status: str) -> None:
    site.add("vllm", vllm)
    site.add("vllm-omni", omni)
    found = check_engine(site.path)
    assert found.status is Status(status)
    assert vllm in found.finding
    assert omni in found.finding


@pytest.mark.parametrize(
    ("torch", "pin", "status"),
    [
        ("2.13.0", "torch (==2.13.0)", "ok"),
        ("2.13.0+cu130", "torch==2.13.0", "ok"),
        ("2.12.0", "torch (==2.13.0)", "fail"),
        ("2.13.0", "torch-geometric==1.0", "note"),
    ],
)
def test_torch_and_torchvision_are_a_pair(site: Any, torch: str, pin: str, status: str) -> None:
    site.add("torch", torch)
    site.add("torchvision", "0.28.0", requires=["numpy", pin])
    assert check_torch(site.path).status is Status(status)


def test_torchvision_is_needed(site: Any) -> None:
    site.add("torch", "2.13.0")
    assert "without torchvision" in check_torch(site.path).finding
