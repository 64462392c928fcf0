"""The rules that the command and the engine share."""

import math
import re

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.solver import clean_sample, correct, flow_schedule, order_at, predict
from omni_neuron.wan22.request import (
    MAX_FLOW_SHIFT,
    MAX_GUIDANCE_SCALE,
    MAX_SEED,
    MAX_STEPS,
    MIN_FLOW_SHIFT,
    VideoRules,
    check_boundary_ratio,
    check_flow_shift,
    check_prompt,
    check_seed,
    check_steps,
    check_text_length,
)

RULES = {8: VideoRules(), 16: VideoRules(spatial_scale=16, latent_channels=48)}
scales = st.sampled_from(sorted(RULES))


def refusal(check, *args):
    with pytest.raises(InputError) as error:
        check(*args)
    sentence = str(error.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


@given(scales, st.integers(1, 300), st.integers(1, 300))
def test_a_size_of_whole_tokens_is_accepted(scale, rows, columns):
    RULES[scale].check_size(rows * 2 * scale, columns * 2 * scale)


@given(scales, st.integers(-100, 5000))
def test_another_size_is_refused_with_the_nearest_that_are_not(scale, size):
    rules = RULES[scale]
    if size > 0 and size % (2 * scale) == 0:
        return
    good = 4 * scale
    for name, height, width in (("height", size, good), ("width", good, size)):
        sentence = refusal(rules.check_size, height, width)
        assert sentence.startswith(f"{name} is {size}, ")
        assert f"multiple of {2 * scale};" in sentence
        below, above = map(int, re.search(r"nearest are (\d+) and (\d+)\.$", sentence).groups())
        rules.check_size(below, above)
        assert above - below == 2 * scale
        assert below <= size < above or size < 4 * scale


@given(st.integers(1, 4096))
def test_frames_are_rounded_down_to_whole_latent_frames_and_said(frames):
    rounded, note = RULES[8].round_frames(frames)
    assert rounded % 4 == 1
    assert 0 <= frames - rounded < 4
    assert (note is None) == (frames == rounded)
    if note is not None:
        assert f"num_frames is {frames}" in note
        assert f"down to {rounded}" in note
    assert RULES[8].round_frames(rounded) == (rounded, None)
    assert RULES[8].latent_shape(64, 96, rounded) == (16, (rounded + 3) // 4, 8, 12)


@pytest.mark.parametrize("frames", [0, -3])
def test_no_frames(frames):
    assert f"num_frames is {frames}" in refusal(RULES[8].round_frames, frames)


@pytest.mark.parametrize("value", [16.0, "16", True, None])
def test_whole_numbers_are_whole(value):
    for check in (RULES[8].round_frames, check_steps, check_seed):
        assert repr(value) in refusal(check, value)
    assert repr(value) in refusal(RULES[8].check_size, value, 64)


@pytest.mark.parametrize("prompt", ["", " ", "\n\t "])
def test_a_prompt_without_a_word(prompt):
    assert "prompt is" in refusal(check_prompt, prompt)


@pytest.mark.parametrize("scale", sorted(RULES))
def test_a_video_may_have_as_many_tokens_along_an_axis_as_the_model_has_positions(scale):
    rules = RULES[scale]
    largest = 1024 * 2 * scale
    rules.check_size(largest, largest)
    for name, size in (("height", (largest + 2 * scale, 64)), ("width", (64, largest + 1))):
        sentence = refusal(rules.check_size, *size)
        assert f"{name} is {max(size)}, but it must be at most {largest}" in sentence
        assert "rope_max_seq_len" in sentence
    assert rules.round_frames(4096)[0] == 4093
    assert rules.latent_shape(64, 64, 4093)[1] == 1024
    assert "num_frames is 4097, but it must be at most 4093" in refusal(rules.round_frames, 4097)
    assert VideoRules(max_positions=12).max_size == 192


@pytest.mark.parametrize("steps", [0, -1, MAX_STEPS + 1, 10**30])
def test_no_steps_or_more_than_noise_levels(steps):
    assert f"num_inference_steps is {steps}" in refusal(check_steps, steps)


@pytest.mark.parametrize("boundary", [-0.01, 1.01, math.nan, math.inf])
def test_a_boundary_outside_the_noise_levels(boundary):
    assert f"boundary_ratio is {boundary}" in refusal(check_boundary_ratio, boundary)


@given(st.floats(0, 1))
def test_a_boundary_inside(boundary):
    check_boundary_ratio(boundary)


@pytest.mark.parametrize("length", [0, -1, 513])
def test_prompts_longer_than_in_training(length):
    check_text_length(512)
    assert f"max_sequence_length is {length}, but it must lie in 1..512." in refusal(
        check_text_length, length
    )


@given(st.integers(1, MAX_STEPS), st.floats(MIN_FLOW_SHIFT, MAX_FLOW_SHIFT))
@example(MAX_STEPS, MIN_FLOW_SHIFT)
@example(MAX_STEPS, MAX_FLOW_SHIFT)
@settings(max_examples=20, deadline=None)
def test_every_shift_and_number_of_steps_that_is_allowed_ends_in_numbers(steps, shift):
    """The solver with a model that predicts the same velocity everywhere, guided at the largest scale."""
    check_steps(steps)
    check_flow_shift(shift)
    sigmas = flow_schedule(steps, shift).sigmas
    assert bool((sigmas.diff() < 0).all())
    sample = torch.ones(2)
    velocity = torch.tensor([1.0, -1.0]) * MAX_GUIDANCE_SCALE
    estimates, last, order = [], sample, 1
    for index in range(steps):
        estimate = clean_sample(sample, velocity, sigmas[index])
        if index:
            sample = correct(last, estimates, estimate, sigmas, index, order)
        estimates = [*estimates[-1:], estimate]
        order = order_at(index, steps)
        last, sample = sample, predict(sample, estimates, sigmas, index, order)
    assert bool(sample.isfinite().all())


@pytest.mark.parametrize("shift", [0.0, -1.0, 1e-320, 1e9, math.nan, math.inf])
def test_a_shift_that_is_none(shift):
    assert f"flow_shift is {shift}" in refusal(check_flow_shift, shift)


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1])
def test_a_seed_that_torch_does_not_take(seed):
    assert f"seed is {seed}" in refusal(check_seed, seed)


def test_the_largest_seed():
    check_seed(MAX_SEED)
    torch.Generator().manual_seed(MAX_SEED)


@pytest.mark.parametrize("scale", [-1.0, 1e308, 10**400, math.nan, math.inf])
def test_guidance_beyond_any_use(scale):
    assert f"guidance_scale is {scale}" in refusal(RULES[8].check_guidance, scale, None)
    assert f"guidance_scale_2 is {scale}" in refusal(RULES[8].check_guidance, 1.0, scale)


def test_a_second_guidance_needs_a_second_expert():
    RULES[8].check_guidance(4.0, 3.0)
    one = VideoRules(two_experts=False)
    one.check_guidance(4.0, None)
    assert "guidance_scale_2 is 3.0" in refusal(one.check_guidance, 4.0, 3.0)


@pytest.mark.parametrize(
    "shape", [(16, 5, 8, 8), (1, 16, 5, 8, 9), (1, 16, 4, 8, 8), (1, 48, 5, 8, 8), (2, 16, 5, 8, 8)]
)
def test_latents_of_another_shape(shape):
    RULES[8].check_latents((1, 16, 5, 8, 8), 64, 64, 17)
    sentence = refusal(RULES[8].check_latents, shape, 64, 64, 17)
    assert str(shape) in sentence
    assert "(1, 16, 5, 8, 8)" in sentence
