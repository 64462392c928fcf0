import inspect

import pytest

from omni_neuron.runtime import targets
from omni_neuron.runtime.adapter import get_adapter
from omni_neuron.runtime.adapter.base import NeuronAdapter, frozen_groups
from omni_neuron.runtime.adapter.cpu import CpuAdapter
from omni_neuron.runtime.adapter.lite import LiteAdapter
from omni_neuron.runtime.adapter.torch_neuron import TorchNeuronAdapter
from omni_neuron.runtime.mode import detect_mode

MEMBERS = {name for name in vars(NeuronAdapter) if not name.startswith("_")}


@pytest.mark.parametrize("variant", [CpuAdapter, LiteAdapter, TorchNeuronAdapter])
def test_every_variant_has_every_member_with_the_same_parameters(variant: type) -> None:
    for name in MEMBERS - {"name"}:
        expected = inspect.signature(getattr(NeuronAdapter, name)).parameters
        assert list(inspect.signature(getattr(variant, name)).parameters) == list(expected), name
    assert isinstance(variant.name, str)


def test_groups_are_copied_in_order() -> None:
    source = [[12, 8], [0, 4]]
    groups = frozen_groups(source)
    source[0].append(99)
    assert groups == ((12, 8), (0, 4))


@pytest.mark.hardware
def test_the_variant_of_this_process_answers() -> None:
    adapter, hardware = get_adapter(), detect_mode().is_hardware
    assert (adapter.name == "cpu") != hardware
    assert (adapter.logical_core_count() > 0) == hardware
    assert (adapter.compile_backend() is not None) == hardware
    assert adapter.hbm_bytes() > 1 << 30
    assert targets.family(adapter.platform_target()) is not None or not hardware
    adapter.synchronize()
    groups = ((1, 0), (3, 2))
    adapter.register_replica_groups("test of the adapter", groups)
    assert adapter.replica_groups("test of the adapter") == groups
