from typing import Any

import pytest

from omni_neuron.runtime.wheels import (
    NEURON_WHEELS,
    Wheel,
    WheelState,
    inspect_wheel,
    inspect_wheels,
    installed_version,
    real_wheels,
)


def test_absent(site: Any) -> None:
    assert inspect_wheel("nki", site.path) == Wheel("nki", WheelState.ABSENT, None)


@pytest.mark.parametrize("folder", ["nki", "nki-with-a-hyphen"])
def test_one_init_file_alone_is_a_placeholder(site: Any, folder: str) -> None:
    site.add_placeholder("nki", folder)
    assert inspect_wheel("nki", site.path) == Wheel("nki", WheelState.PLACEHOLDER, "0.0.1")


def test_no_code_at_all_is_a_placeholder(site: Any) -> None:
    site.add("nki", "9.9.9", {"nki/README.md": "", "nki/__pycache__/x.cpython-311.pyc": ""})
    assert inspect_wheel("nki", site.path).state is WheelState.PLACEHOLDER


@pytest.mark.parametrize(
    "files",
    [
        {"nki/__init__.py": "", "nki/language.py": ""},
        {"nki/__init__.py": "", "nki/isa/__init__.py": ""},
        {"nki/_core.cpython-311-x86_64-linux-gnu.so": ""},
        {"nki.py": ""},
    ],
)
def test_code_makes_it_real_whatever_the_version(site: Any, files: dict[str, str]) -> None:
    site.add("nki", "0.0.1", files)
    assert inspect_wheel("nki", site.path) == Wheel("nki", WheelState.REAL, "0.0.1")


def test_an_editable_source_tree_is_real(site: Any) -> None:
    site.add("vllm-neuron", "0.29.0", {"__editable__.vllm_neuron-0.29.0.pth": "/source"}, editable=True)
    assert inspect_wheel("vllm-neuron", site.path).is_real


def test_all_wheels_in_a_fixed_order(site: Any) -> None:
    site.add_neuron()
    site.add_placeholder("libneuronxla")
    assert tuple(wheel.name for wheel in inspect_wheels(site.path)) == NEURON_WHEELS
    assert {wheel.name for wheel in real_wheels(site.path)} == {
        "vllm-neuron",
        "libtorch-neuronx-lite",
        "neuronx-cc",
        "nki",
    }


def test_without_a_path_this_environment_is_searched() -> None:
    assert installed_version("torch")
    assert installed_version("a-package-of-no-one") is None
