"""What is offered in place of a layout that does not route."""

import pytest

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import offending_group
from omni_neuron.distributed.placement.nearest import nearest_layout
from omni_neuron.distributed.topology import instance

TRN2 = instance("trn2.48xlarge")


@pytest.mark.parametrize(
    ("layout", "nearest"),
    [
        (ParallelLayout(8, 3), ParallelLayout(8, 4)),
        (ParallelLayout(4, 12), ParallelLayout(4, 16)),
        (ParallelLayout(5), ParallelLayout(4)),
        (ParallelLayout(4, 4, 3), ParallelLayout(4, 4, 2)),
        (ParallelLayout(8, 16, 2), ParallelLayout(8, 4, 2)),
        (ParallelLayout(4, 6, 2, ulysses=2), ParallelLayout(4, 8, 2, ulysses=2)),
        (ParallelLayout(4, 2, 2, dp=3, pp=2), ParallelLayout(4, 2, 2, dp=2, pp=2)),
        (ParallelLayout(4, 4, pp=3, vae=12), ParallelLayout(4, 4, pp=3, vae=4)),
    ],
    ids=str,
)
def test_nearest(layout, nearest):
    found = nearest_layout(layout, TRN2)
    assert found.with_placement(None) == nearest
    assert offending_group(found, TRN2) is None


def test_a_layout_that_routes_is_its_own_nearest():
    for degrees in ((4, 8, 2), (8, 4, 2), (2, 2, 2)):
        assert nearest_layout(ParallelLayout(*degrees), TRN2).with_placement(None) == ParallelLayout(*degrees)
