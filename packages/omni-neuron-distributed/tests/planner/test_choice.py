import pytest

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.planner.choice import Choice


@pytest.mark.parametrize(("group", "ranks"), [("tp", 2), ("tp_cp", 8), ("world", 16)])
def test_ranks_that_share_the_text_encoder(group, ranks):
    assert Choice(ParallelLayout(2, 4, 2, text_encoder=group)).text_encoder_ranks == ranks
