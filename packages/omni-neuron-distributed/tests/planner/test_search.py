"""The search on one trn2.48xlarge, and the layout it finds for the job that was published."""

import pytest

from omni_neuron.distributed.errors import LayoutError
from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.placement import place
from omni_neuron.distributed.planner.amounts import amounts
from omni_neuron.distributed.planner.candidate import Candidate
from omni_neuron.distributed.planner.choice import Choice
from omni_neuron.distributed.planner.job import make_job
from omni_neuron.distributed.planner.ledger import ledger
from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.distributed.planner.search import (
    MODEL_ERROR,
    best_placement,
    check_divides,
    layouts,
    ranked,
    search,
    vae_ranks,
    with_text_encoder,
)
from omni_neuron.distributed.topology import instance

TRN2 = instance("trn2.48xlarge")
JOB = make_job(load_model("wan2.2-t2v-a14b"))


@pytest.fixture(scope="module")
def found() -> list[Candidate]:
    return search(JOB, TRN2)


def test_the_best_layout_for_720p_beats_the_published_one_on_every_count(found):
    best = found[0]
    layout = best.choice.layout
    assert (layout.tp, layout.ulysses, layout.ring, layout.cfg, layout.vae) == (2, 4, 4, 2, 32)
    assert (best.choice.resident_experts, best.choice.weight_dtype, layout.text_encoder) == (
        2,
        "fp8",
        "tp_cp",
    )
    assert best.accepted
    assert best.ledger.total <= 24
    assert best.sent_bytes <= 0.6e12
    published = next(
        candidate
        for candidate in found
        if (candidate.choice.layout.tp, candidate.choice.layout.ring, candidate.choice.layout.cfg)
        == (8, 4, 2)
    )
    assert best.predicted_s < published.predicted_s
    assert best.predicted_s < 157.8
    assert best.predicted_kernels_s < published.predicted_kernels_s
    assert best.predicted_kernels_s <= 82


def test_the_best_layout_stands_where_it_stood(found):
    """Pairs on a chip, Ulysses along torus rows, rings over two neighbours, guidance across torus rows."""
    layout = found[0].choice.layout
    assert layout.groups("tp")[:3] == [(0, 1), (4, 5), (8, 9)]
    assert layout.groups("ulysses")[0] == (0, 4, 8, 12)
    assert layout.groups("ring")[0] == (0, 2, 16, 18)
    assert layout.groups("cfg")[0] == (0, 48)
    assert layout.groups("vae") == [tuple(range(32)), tuple(range(32, 64))]
    assert [sorted(group) for group in layout.groups("text_encoder")] == [
        sorted(core for core in range(64) if (core // 16 in (0, 1)) == first) for first in (True, False)
    ]


def test_every_factorisation_of_every_divisor_of_the_cores_is_there(found):
    degrees = {
        (layout.tp, layout.ulysses, layout.ring, layout.cfg)
        for layout in (candidate.choice.layout for candidate in found)
    }
    powers = [1, 2, 4, 8, 16, 32, 64]
    assert degrees == {
        (tp, ulysses, ring, cfg)
        for tp in powers
        for ulysses in powers
        for ring in powers
        for cfg in (1, 2)
        if tp * ulysses * ring * cfg <= 64
    }
    assert len(found) == 4 * len(degrees)


def test_every_rejected_candidate_says_why(found):
    for candidate in found:
        assert candidate.accepted or candidate.reasons
        assert candidate.routable == (candidate.predicted_s is not None)


def test_accepted_groups_all_route(found):
    for candidate in found:
        if candidate.accepted:
            for name in ("tp", "ulysses", "ring", "cp", "cfg", "vae", "text_encoder"):
                groups = candidate.choice.layout.groups(name)
                assert len(groups[0]) == 1 or all(TRN2.routes(group) for group in groups)


def test_of_equally_fast_candidates_the_one_that_moves_least_comes_first(found):
    accepted = [candidate for candidate in found if candidate.accepted]
    fastest = min(candidate.predicted_s for candidate in accepted)
    close = [candidate for candidate in accepted if candidate.predicted_s <= fastest * (1 + MODEL_ERROR)]
    assert accepted[: len(close)] == sorted(close, key=lambda candidate: candidate.sent_bytes)
    rest = [candidate.predicted_s for candidate in accepted[len(close) :]]
    assert rest == sorted(rest)
    assert not any(candidate.accepted for candidate in found[len(accepted) :])
    assert ranked(list(reversed(found))) == found


@pytest.mark.parametrize("degrees", [(8, 4, 2), (4, 8, 2)])
def test_the_placement_is_at_least_as_fast_as_the_published_one(degrees):
    layout = ParallelLayout(*degrees, vae=32)

    def waits(placed):
        need = amounts(JOB, Choice(placed), TRN2)
        return sum(wire.seconds for wire in (*need.wires.values(), need.ring))

    assert waits(best_placement(JOB, layout, TRN2)) <= waits(place(layout, TRN2))


def test_a_layout_without_a_placement_is_refused():
    with pytest.raises(LayoutError, match="nearest layout that routes"):
        best_placement(JOB, ParallelLayout(2, 3), TRN2)


def test_vae_groups_have_the_published_sizes():
    small = make_job(load_model("wan2.2-t2v-a14b"), 480, 832)
    assert [vae_ranks(JOB, world) for world in (64, 32, 8, 24)] == [32, 32, 8, 8]
    assert vae_ranks(small, 64) == 16


def test_the_text_encoder_takes_the_first_group_that_fits():
    def group(tp, dtype="fp8"):
        layout = ParallelLayout(tp, 32 // tp, 2, ulysses=1, vae=32)
        return with_text_encoder(JOB, Choice(layout, "ring", 2, dtype), TRN2).layout.text_encoder

    assert group(4) == "tp"
    assert group(2, "bf16") == "world"
    layout = ParallelLayout(2, 16, 2, ulysses=4, vae=32)
    choice = with_text_encoder(JOB, Choice(layout, "ring", 2, "fp8"), TRN2)
    assert choice.layout.text_encoder == "tp_cp"
    assert ledger(JOB, Choice(layout, "ring", 2, "fp8")).total > TRN2.hbm_gb_per_core


def test_layouts_of_an_instance_whose_cores_are_no_power_of_two():
    worlds = {layout.world_size for layout in layouts(JOB, instance("inf2.48xlarge"))}
    assert worlds == {1, 2, 3, 4, 6, 8, 12, 24}


@pytest.mark.parametrize(("tp", "near"), [(3, 4), (5, 4), (16, 8)])
def test_tensor_parallelism_must_divide_the_model(tp, near):
    with pytest.raises(LayoutError, match=f"the nearest choice is tp={near}"):
        check_divides(JOB, ParallelLayout(tp))
