"""Against the published tables of work per forward, per rank and per decode."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.distributed.layout import ParallelLayout
from omni_neuron.distributed.planner.flops import (
    forward_flops,
    head_share,
    rank_forward_flops,
    text_encoder_flops,
    vae_decode_flops,
    vae_encode_flops,
    vae_grid,
    vae_rank_share,
)
from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.model_files import load_model

A14B, TI2V, SMALL = (load_model(name) for name in ("wan2.2-t2v-a14b", "wan2.2-ti2v-5b", "wan2.1-t2v-1.3b"))


@pytest.mark.parametrize(
    ("model", "height", "width", "frames", "petaflops"),
    [
        (A14B, 480, 832, 33, 0.505),
        (A14B, 480, 832, 81, 1.678),
        (A14B, 480, 832, 121, 3.095),
        (A14B, 720, 1280, 81, 6.523),
        (A14B, 720, 1280, 121, 12.92),
        (SMALL, 480, 832, 81, 0.283),
        (TI2V, 480, 832, 121, 0.163),
        (TI2V, 704, 1280, 81, 0.293),
        (TI2V, 704, 1280, 121, 0.521),
    ],
)
def test_one_forward(model, height, width, frames, petaflops):
    total = forward_flops(Job(model, height, width, frames, 1)).total
    assert total * 1e-15 == pytest.approx(petaflops, rel=3e-3)


def test_the_parts_of_a_forward():
    for size, parts in (((480, 832), (275, 879, 140, 14, 371)), ((720, 1280), (634, 4682, 319, 32, 856))):
        flops = forward_flops(Job(A14B, *size, 81, 1))
        found = (
            flops.self_projections,
            flops.self_attention,
            flops.cross_projections,
            flops.cross_attention,
            flops.ffn,
        )
        assert [part * 1e-12 for part in found] == pytest.approx(parts, abs=0.5)


def test_per_token_time_counts_once_per_token_and_forward():
    job = Job(TI2V, 704, 1280, 121, 1)
    assert forward_flops(job).modulation == 2 * 27_280 * (256 * 3072 + 7 * 3072**2)
    assert forward_flops(Job(A14B, 720, 1280, 81, 1)).modulation == 0


@pytest.mark.parametrize(
    ("tp", "cp", "small", "large"),
    [
        (1, 1, 1678, 6523),
        (2, 1, 839, 3262),
        (4, 1, 420, 1631),
        (8, 1, 210, 815),
        (1, 4, 421, 1632),
        (1, 8, 212, 817),
        (2, 2, 420, 1631),
        (2, 4, 211, 816),
        (4, 2, 210, 816),
    ],
)
def test_work_per_rank(tp, cp, small, large):
    for ulysses in (cp, 1):
        layout = ParallelLayout(tp, cp, ulysses=ulysses)
        for size, teraflops in (((480, 832), small), ((720, 1280), large)):
            flops = rank_forward_flops(Job(A14B, *size, 81, 1), layout)
            assert flops.total * 1e-12 == pytest.approx(teraflops, abs=1)


@given(
    tp=st.sampled_from([1, 2, 4, 8]),
    ulysses=st.integers(1, 5),
    ring=st.integers(1, 8),
    frames=st.integers(0, 30),
)
def test_the_ranks_together_do_at_least_the_whole_work(tp, ulysses, ring, frames):
    job = Job(A14B, 480, 832, 4 * frames + 1, 1)
    whole = forward_flops(job)
    part = rank_forward_flops(job, ParallelLayout(tp, ulysses * ring, ulysses=ulysses))
    ranks = tp * ulysses * ring
    assert part.self_attention * ranks >= whole.self_attention * (1 - 1e-12)
    assert part.linear * ranks >= whole.linear * (1 - 1e-12)


def test_uneven_heads_cost_what_the_busiest_rank_has():
    assert head_share(40, 2, 4) == 5 / 40
    assert head_share(40, 2, 8) == 3 / 40
    assert head_share(40, 1, 16) == 3 / 40


def test_one_prompt():
    assert text_encoder_flops(A14B.text_encoder) * 1e-12 == pytest.approx(4.7, rel=0.04)


@pytest.mark.parametrize(
    ("model", "height", "width", "frames", "decode", "clip", "image"),
    [
        (A14B, 480, 832, 81, 275, 164, 2.7),
        (A14B, 720, 1280, 81, 639, 382, 6.5),
        (TI2V, 480, 832, 121, 891, None, None),
        (TI2V, 704, 1280, 81, 1348, None, None),
        (TI2V, 704, 1280, 121, 2011, 383, 4.22),
    ],
)
def test_vae(model, height, width, frames, decode, clip, image):
    job = Job(model, height, width, frames, 1)
    assert vae_decode_flops(job) * 1e-12 == pytest.approx(decode, abs=0.5)
    if clip is not None:
        assert vae_encode_flops(job, frames) * 1e-12 == pytest.approx(clip, abs=0.5)
        assert vae_encode_flops(job, 1) * 1e-12 == pytest.approx(image, abs=0.05)
    assert vae_encode_flops(job, 0) == 0


@given(ranks=st.sampled_from([1, 2, 4, 8, 16, 32, 64]))
def test_patches_cover_the_frame_and_overlap(ranks):
    job = Job(A14B, 720, 1280, 81, 1)
    rows, columns = vae_grid(job, ranks)
    assert rows * columns == ranks
    assert (vae_rank_share(job, ranks) * ranks > 1) == (ranks > 1)


def test_a_patch_has_an_overlap_of_64_pixels_on_every_cut_axis():
    job = Job(A14B, 720, 1280, 81, 1)
    assert vae_grid(job, 32) == (4, 8)
    assert math.isclose(vae_rank_share(job, 32), (180 + 64) * (160 + 64) / (720 * 1280))
    assert vae_rank_share(job, 1) == 1
