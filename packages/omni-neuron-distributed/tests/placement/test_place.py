"""Who decides the placement, and how a refusal reads."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_neuron.distributed.errors import LayoutError, divisors
from omni_neuron.distributed.layout import TEXT_ENCODER_GROUPS, ParallelLayout
from omni_neuron.distributed.placement import find_placement, offending_group, place, published_layout
from omni_neuron.distributed.topology import instance
from omni_neuron.runtime import envs

TRN2 = instance("trn2.48xlarge")


@pytest.mark.parametrize("degrees", [(4, 8, 2), (8, 4, 2), (8, 4, 1), (8, 8, 1), (2, 8, 4), (8, 2, 2)])
def test_what_was_published_comes_first(degrees):
    layout = ParallelLayout(*degrees, vae=8, text_encoder="tp_cp")
    assert place(layout, TRN2) == published_layout(*degrees, TRN2, vae=8, text_encoder="tp_cp")


@pytest.mark.parametrize(
    "layout",
    [
        ParallelLayout(4, 16),
        ParallelLayout(4, 8, 2, ulysses=4),
        ParallelLayout(16, 2, 2),
        ParallelLayout(8, 2, 2, dp=2),
        ParallelLayout(1, 8, 2, pp=2),
    ],
    ids=str,
)
def test_the_search_places_the_rest(layout):
    placed = place(layout, TRN2)
    assert (placed.placement or tuple(range(64))) == find_placement(layout, TRN2)
    assert offending_group(placed, TRN2) is None


def test_a_published_placement_whose_factors_do_not_route_is_not_taken():
    layout = ParallelLayout(4, 8, 2, ulysses=4)
    assert offending_group(published_layout(4, 8, 2, TRN2, ulysses=4), TRN2) == ("ring", (0, 32))
    assert place(layout, TRN2).group_of("ring", 0) == (0, 16)


def test_a_placement_of_its_own_is_kept_or_refused():
    own = ParallelLayout(2, 2, placement=[1, 0, 3, 2])
    assert place(own, TRN2) is own
    with pytest.raises(LayoutError) as caught:
        place(ParallelLayout(2, 4, placement=[0, 4, 1, 5, 2, 7, 3, 6]), TRN2)
    assert str(caught.value) == (
        "tp=2 x cp=4 x cfg=1 does not route on trn2.48xlarge: the tp group [2, 7] cannot be built, its chips "
        "[0, 1] contribute different cores, [2] of chip 0 and [3] of chip 1; leave out its placement."
    )


small = st.sampled_from([1, 2, 4, 8])


@settings(max_examples=200)
@given(
    degrees=st.tuples(small, small, small, st.sampled_from([1, 2]), st.integers(1, 4), st.integers(1, 3)),
    text_encoder=st.sampled_from(TEXT_ENCODER_GROUPS),
    data=st.data(),
)
def test_every_group_of_whatever_is_placed_routes(degrees, text_encoder, data):
    tp, ulysses, ring, cfg, dp, pp = degrees
    vae = data.draw(st.sampled_from(divisors(tp * ulysses * ring * cfg * pp)))
    layout = ParallelLayout(
        tp, ulysses * ring, cfg, dp, pp, ulysses=ulysses, vae=vae, text_encoder=text_encoder
    )
    try:
        placed = place(layout, TRN2)
    except LayoutError:
        return
    assert placed.with_placement(None) == layout
    for name in ("tp", "ulysses", "ring", "cp", "cfg", "text_encoder", "vae"):
        assert all(map(TRN2.routes, placed.groups(name)))


def test_the_arithmetic_placement_is_kept_or_refused_like_any_other():
    layout = ParallelLayout(4, 4)
    assert place(layout.with_placement(range(16)), TRN2) == layout
    layout = ParallelLayout(8, 2)
    assert place(layout, TRN2).placement is not None
    assert place(layout.with_placement(range(16)), instance("cpu")) == layout
    with pytest.raises(
        LayoutError, match=r"ring group \[0, 8\] cannot be built, .*; leave out its placement\."
    ):
        place(layout.with_placement(range(16)), TRN2)


def test_a_refusal_names_group_chips_and_the_nearest_layout():
    with pytest.raises(LayoutError) as caught:
        place(ParallelLayout(8, 3), TRN2)
    assert str(caught.value) == (
        "tp=8 x cp=3 x cfg=1 does not route on trn2.48xlarge: the ring group [0, 8, 16] cannot be built, its "
        "chips [0, 2, 4] are no ring or rectangle of rings on the 4 x 4 torus; use tp=8 x cp=4 x cfg=1, the "
        "nearest layout that routes."
    )
    with pytest.raises(LayoutError) as caught:
        place(ParallelLayout(8, 16, 2), TRN2)
    assert str(caught.value) == (
        "tp=8 x cp=16 x cfg=2 = 256 ranks exceed the 64 cores of trn2.48xlarge: use tp=8 x cp=4 x cfg=2, the "
        "nearest layout that routes."
    )


def test_without_a_rule_the_layout_stays_arithmetic():
    layout = ParallelLayout(4, 8, 2)
    for name in ("trn3", "cpu"):
        assert place(layout, instance(name)) is layout
    with pytest.raises(LayoutError, match=r"64 ranks exceed the 32 cores of trn1\.32xlarge"):
        place(layout, instance("trn1.32xlarge"))


def test_contiguous_groups_on_request_are_no_silent_fallback(monkeypatch):
    monkeypatch.setenv(envs.switch_cc.name, "1")
    contiguous = ParallelLayout(4, 16)
    assert place(contiguous, TRN2) is contiguous
    with pytest.raises(LayoutError, match=r"cfg group \[0, 32\].* torus; unset VLLM_NEURON_SWITCH_CC\.$"):
        place(ParallelLayout(4, 8, 2), TRN2)
    with pytest.raises(LayoutError, match=r"torus; use tp=8 x cp=4 x cfg=1, the nearest"):
        place(ParallelLayout(8, 3), TRN2)
