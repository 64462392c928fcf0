from typing import Any

import pytest

from omni_neuron.runtime.adapter.wheel_member import wheel_member
from omni_neuron.runtime.errors import SetupError


def test_the_message_of_a_failing_import_is_kept(importable: Any) -> None:
    importable.add(
        "torch-neuronx", "2.13.3", {"torch_neuronx/__init__.py": "raise ImportError('libnrt.so.1')\n"}
    )
    with pytest.raises(SetupError, match=r"torch-neuronx 2\.13\.3 .*libnrt\.so\.1.*: reinstall it\."):
        wheel_member("torch-neuronx", "torch_neuronx", "nki_op", "reinstall it")


def test_an_absent_wheel_is_said_to_be_absent() -> None:
    with pytest.raises(SetupError, match=r"no-such-wheel \(not installed\)"):
        wheel_member("no-such-wheel", "no_such_wheel", "x", "install it")
