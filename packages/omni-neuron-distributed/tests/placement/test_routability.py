"""The published table of verdicts: which groups of which layout pass the rule."""

import pytest

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import ROUTED_GROUPS, offending_group, published_layout
from omni_neuron.distributed.topology import instance

TRN2 = instance("trn2.48xlarge")


@pytest.mark.parametrize(
    ("layout", "rejected"),
    [
        (published_layout(4, 8, 2, TRN2), {"tp": 0, "cp": 0, "cfg": 0}),
        (published_layout(8, 4, 2, TRN2), {"tp": 0, "cp": 0, "cfg": 0}),
        (published_layout(8, 4, 1, TRN2), {"tp": 0, "cp": 0}),
        (ParallelLayout(4, 8, 2), {"tp": 0, "cp": 0, "cfg": 32}),
        (ParallelLayout(8, 4, 2), {"tp": 0, "cp": 16, "cfg": 32}),
        (ParallelLayout(8, 4, 1), {"tp": 0, "cp": 8}),
    ],
    ids=["A 4 8 2", "B 8 4 2", "B 8 4 1", "arithmetic 4 8 2", "arithmetic 8 4 2", "arithmetic 8 4 1"],
)
def test_verdicts(layout, rejected):
    for name, count in rejected.items():
        assert sum(not TRN2.routes(group) for group in layout.groups(name)) == count
    assert (offending_group(layout, TRN2) is None) is not any(rejected.values())


def test_a_rejected_layout_names_its_first_group():
    assert offending_group(ParallelLayout(4, 8, 2), TRN2) == ("cfg", (0, 32))
    # Factors come before the whole of cp: a person can change them one by one.
    assert offending_group(ParallelLayout(8, 4, 1), TRN2) == ("ring", (0, 8, 16, 24))
    assert offending_group(ParallelLayout(8, 4, 1, ulysses=2), TRN2) == ("ulysses", (0, 8))


@pytest.mark.parametrize(("vae", "routes"), [(1, True), (2, True), (4, True), (16, True), (12, False)])
def test_the_decoder_and_the_text_encoder_are_judged_too(vae, routes):
    layout = ParallelLayout(4, 4, dp=1, pp=3, vae=vae)
    offence = offending_group(layout, TRN2)
    assert offence == (None if routes else ("vae", tuple(range(12))))
    world = ParallelLayout(4, 4, pp=3, text_encoder="world")
    assert offending_group(world, TRN2) == ("text_encoder", tuple(range(48)))


def test_replicas_of_data_parallelism_exchange_nothing():
    assert not {"dp", "pp"} & set(ROUTED_GROUPS)
    assert offending_group(ParallelLayout(4, dp=3), TRN2) is None


def test_without_a_rule_nothing_is_rejected():
    assert offending_group(ParallelLayout(3, 4), instance("trn3")) is None
