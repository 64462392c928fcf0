import pytest

from omni_neuron.distributed.planner.data_files import read_table
from omni_neuron.distributed.planner.seconds import kernels


def test_the_kernels_are_counted_as_stated_until_they_are_measured():
    assert (kernels().attention, kernels().linear) == (0.75, 0.85)


@pytest.mark.parametrize("name", ["machines", "published", "constants", "kernels", "ledger"])
def test_every_table_can_be_read(name):
    assert read_table(name)
