import pytest

from omni_neuron.distributed.planner.geometry import Job
from omni_neuron.distributed.planner.model_files import load_model

A14B, TI2V = load_model("wan2.2-t2v-a14b"), load_model("wan2.2-ti2v-5b")


@pytest.mark.parametrize(
    ("model", "height", "width", "frames", "latent", "tokens"),
    [
        (A14B, 480, 832, 33, (9, 60, 104), 14_040),
        (A14B, 480, 832, 81, (21, 60, 104), 32_760),
        (A14B, 720, 1280, 81, (21, 90, 160), 75_600),
        (A14B, 480, 832, 1, (1, 60, 104), 1_560),
        (TI2V, 480, 832, 121, (31, 30, 52), 12_090),
        (TI2V, 704, 1280, 121, (31, 44, 80), 27_280),
    ],
)
def test_published_token_counts(model, height, width, frames, latent, tokens):
    job = Job(model, height, width, frames, 40)
    assert job.latent == latent
    assert job.tokens == tokens


def test_a_step_is_one_forward_per_branch_that_the_rank_has():
    guided, plain = Job(A14B, 720, 1280, 81, 40), Job(A14B, 720, 1280, 81, 3, branches=1)
    assert [(guided.rank_branches(cfg), guided.rank_forwards(cfg)) for cfg in (1, 2)] == [(2, 80), (1, 40)]
    assert (plain.rank_branches(1), plain.rank_forwards(1)) == (1, 3)


def test_an_image_opens_a_whole_clip_for_i2v_and_stands_alone_for_ti2v():
    i2v = load_model("wan2.2-i2v-a14b")
    assert Job(i2v, 720, 1280, 81, 40, image=True).encoded_frames == 81
    assert Job(TI2V, 704, 1280, 121, 50, image=True).encoded_frames == 1
    assert Job(TI2V, 704, 1280, 121, 50).encoded_frames == 0


def test_a_latent_pixel_covers_the_squares_that_sizes_must_be_multiples_of():
    assert (A14B.pixel_multiple, TI2V.pixel_multiple) == (16, 32)
