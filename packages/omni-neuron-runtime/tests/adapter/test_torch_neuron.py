"""Only the import surface, like `test_lite`."""

from typing import Any

import pytest

from omni_neuron.runtime.adapter.torch_neuron import TorchNeuronAdapter
from omni_neuron.runtime.errors import SetupError

FILES = {
    "torch_neuronx/__init__.py": (
        "def nki_op(name, fn=None, mutates_args=()):\n    return (name, fn, mutates_args)\n"
    ),
    "torch_neuronx/nki_hop.py": "def wrap_nki(kernel):\n    return {2: kernel}\n",
    "torch_neuronx/utils.py": "def get_platform_target():\n    return 'trn2'\n",
    "torch_neuronx/distributed/__init__.py": "",
    "torch_neuronx/distributed/mesh_registry.py": "_MESH_REGISTRY = {}\n",
}


def test_every_member_is_reached(importable: Any) -> None:
    importable.add("torch-neuronx", "2.13.3.0", FILES)
    adapter = TorchNeuronAdapter()
    assert adapter.platform_target() == "trn2"
    assert adapter.hbm_bytes() == 24 << 30
    assert adapter.nki_op("ns::op", len, max) == ("ns::op", len, ())
    assert adapter.wrap_nki(len)[2] is len
    assert adapter.compile_backend() == adapter.process_group_backend() == "neuron"
    adapter.register_replica_groups("tp", [(0, 1)])
    from torch_neuronx.distributed.mesh_registry import _MESH_REGISTRY

    assert _MESH_REGISTRY == {"tp": [[0, 1]]}
    assert adapter.replica_groups("tp") == ((0, 1),)


def test_the_xla_wheel_of_the_same_name_is_refused(importable: Any) -> None:
    importable.add(
        "torch-neuronx", "2.9.0.2.15", {"torch_neuronx/__init__.py": "", "torch_neuronx/xla.py": ""}
    )
    with pytest.raises(SetupError, match=r"torch-neuronx 2\.9\.0\.2\.15 .*nki_op.*>=2\.13\.3"):
        TorchNeuronAdapter()
