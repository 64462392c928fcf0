import pytest

from omni_neuron.distributed.planner.data_files import read_table
from omni_neuron.distributed.planner.seconds import kernels


def test_the_kernels_are_counted_as_stated_until_they_are_measured():
    """What docs/kernels.md predicts for two cores, rounded down; a test of the workspace compares."""
    assert (kernels().attention, kernels().linear) == (0.90, 0.89)


@pytest.mark.parametrize("name", ["machines", "published", "constants", "kernels", "ledger"])
def test_every_table_can_be_read(name):
    assert read_table(name)
