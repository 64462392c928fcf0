import pytest

from omni_neuron.distributed.planner.job import make_job
from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.runtime.errors import InputError

A14B, TI2V = load_model("wan2.2-t2v-a14b"), load_model("wan2.2-ti2v-5b")


def test_sizes_left_out_are_the_model_s():
    job = make_job(TI2V, steps=3)
    assert (job.height, job.width, job.num_frames, job.steps, job.branches) == (704, 1280, 121, 3, 2)


def test_image_models_start_from_an_image():
    assert make_job(load_model("wan2.2-i2v-a14b")).image
    assert not make_job(A14B).image


@pytest.mark.parametrize(
    ("model", "sizes", "message"),
    [
        (A14B, {"height": 0}, r"height=0 must be at least 1: .* 16\."),
        (A14B, {"width": -16}, r"width=-16 must be at least 1: .* 16\."),
        (A14B, {"steps": 0}, r"steps=0 must be at least 1: .* 1\."),
        (A14B, {"num_frames": 0}, r"num_frames=0 must be at least 1: .* 1\."),
        (A14B, {"height": 700}, r"height=700 must be a multiple of 16 .* 704\."),
        (TI2V, {"height": 720}, r"height=720 must be a multiple of 32 .* (704|736)\."),
        (A14B, {"width": 3}, r"width=3 must be a multiple of 16 .* 16\."),
        (A14B, {"num_frames": 80}, r"num_frames=80 must be 1 more than a multiple of 4 .* 81\."),
    ],
)
def test_wrong_sizes_are_refused_with_the_nearest(model, sizes, message):
    with pytest.raises(InputError, match=message):
        make_job(model, **sizes)


@pytest.mark.parametrize("name", ["height", "width", "num_frames", "steps"])
def test_sizes_that_no_float_can_count_are_refused(name):
    with pytest.raises(InputError, match=rf"{name}=10+ must be at most 1048576: use a smaller one\."):
        make_job(A14B, **{name: 10**400})
