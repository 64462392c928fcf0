import inspect

import pytest

from omni_neuron.runtime.adapter.base import NeuronAdapter, frozen_groups
from omni_neuron.runtime.adapter.cpu import CpuAdapter
from omni_neuron.runtime.adapter.lite import LiteAdapter
from omni_neuron.runtime.adapter.torch_neuron import TorchNeuronAdapter

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
