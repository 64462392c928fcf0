"""The engine's scheduler class, without an engine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from omni_neuron.wan22.models.solver import flow_schedule

REFERENCE = Path(__file__).parents[1] / "reference" / "unipc.py"
SHAPE = (2, 4, 3, 6, 5)


@pytest.fixture(scope="session")
def scheduler_class():
    """Imported once and late: the engine takes many seconds."""
    os.environ.setdefault("VLLM_NEURON_CPU_MODE", "1")
    from omni_neuron.wan22.pipelines.scheduler import NeuronFlowUniPCMultistepScheduler

    return NeuronFlowUniPCMultistepScheduler


def run_loop(scheduler, seed, dtype):
    """Every sample of a whole generation with random velocities; fp32 ``[N, *SHAPE]``."""
    generator = torch.Generator().manual_seed(seed)
    sample = torch.randn(SHAPE, generator=generator)
    samples = []
    for timestep in scheduler.timesteps:
        velocity = torch.randn(SHAPE, generator=generator).to(dtype)
        sample = scheduler.step(velocity, timestep, sample, return_dict=False)[0]
        samples.append(sample)
    return torch.stack(samples)


@pytest.fixture(scope="module")
def diffusers_samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unipc")
    cases = [
        {
            "name": f"{steps}-{dtype}",
            "sigmas": flow_schedule(steps, 5).sigmas.tolist(),
            "seed": steps,
            "dtype": dtype,
        }
        for steps in [1, 2, 3, 4, 5, 6, 20, 40]
        for dtype in ("float32", "bfloat16")
    ]
    (folder / "cases.json").write_text(json.dumps(cases))
    command = [sys.executable, str(REFERENCE), str(folder / "cases.json"), str(folder / "out.safetensors")]
    subprocess.run(command, check=True, timeout=120)
    return load_file(folder / "out.safetensors")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 6, 20, 40])
def test_steps_equal_diffusers_bit_by_bit(scheduler_class, diffusers_samples, steps, dtype):
    scheduler = scheduler_class()
    scheduler.set_timesteps(steps, shift=5)
    samples = run_loop(scheduler, steps, getattr(torch, dtype))
    assert torch.isfinite(samples).all()
    assert torch.equal(samples, diffusers_samples[f"{steps}-{dtype}"])


@pytest.mark.parametrize(("steps", "shift"), [(1, 5), (4, 12), (40, 3), (40, 12), (100, 8)])
def test_the_schedule_equals_the_engines(scheduler_class, steps, shift):
    ours, base = scheduler_class(), scheduler_class.__mro__[1](shift=1.0)
    ours.set_timesteps(steps, shift=shift)
    base.set_timesteps(steps, shift=shift)
    assert torch.equal(ours.sigmas, base.sigmas)
    assert torch.equal(ours.timesteps, base.timesteps)


@pytest.mark.parametrize(("shift", "steps"), [(16, 68), (16, 100), (12, 92), (12, 100), (12, 200), (8, 144)])
def test_equal_first_timesteps_do_not_end_the_loop_early(scheduler_class, steps, shift):
    scheduler = scheduler_class()
    scheduler.set_timesteps(steps, shift=shift)
    assert scheduler.timesteps[0] == scheduler.timesteps[1]
    samples = run_loop(scheduler, 0, torch.bfloat16)
    assert len(samples) == steps
    assert torch.isfinite(samples).all()


def test_one_step_lands_on_the_clean_estimate(scheduler_class):
    scheduler = scheduler_class()
    scheduler.set_timesteps(1, shift=5)
    sample, velocity = torch.randn(2, *SHAPE).unbind(0)
    result = scheduler.step(velocity, scheduler.timesteps[0], sample).prev_sample
    assert torch.equal(result, sample - scheduler.sigmas[0] * velocity)


def test_the_default_dtype_does_not_matter(scheduler_class):
    """With a float64 default dtype the base class meets a float32/float64 mismatch at order 2."""
    scheduler = scheduler_class()
    scheduler.set_timesteps(6, shift=5)
    expected = run_loop(scheduler, 3, torch.float32)
    scheduler.set_timesteps(6, shift=5)
    generator = torch.Generator().manual_seed(3)
    sample = torch.randn(SHAPE, generator=generator)
    velocities = [torch.randn(SHAPE, generator=generator) for _ in range(6)]
    torch.set_default_dtype(torch.float64)
    try:
        for timestep, velocity in zip(scheduler.timesteps, velocities, strict=True):
            sample = scheduler.step(velocity, timestep, sample, return_dict=False)[0]
    finally:
        torch.set_default_dtype(torch.float32)
    assert sample.dtype == torch.float32
    assert torch.equal(sample, expected[-1])


def test_a_second_generation_starts_afresh(scheduler_class):
    scheduler = scheduler_class()
    scheduler.set_timesteps(5, shift=5)
    first = run_loop(scheduler, 1, torch.float32)
    scheduler.set_timesteps(5, shift=5)
    assert torch.equal(run_loop(scheduler, 1, torch.float32), first)


def test_given_sigmas_are_shifted(scheduler_class):
    ours, even = scheduler_class(), scheduler_class()
    even.set_timesteps(8, shift=5)
    unshifted = torch.linspace(0.999, 0, 9, dtype=torch.float64)[:-1]
    ours.set_timesteps(sigmas=unshifted, shift=5)
    torch.testing.assert_close(ours.sigmas, even.sigmas, rtol=1e-6, atol=0)
    assert ours.begin_index == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("shift", 5.0), ("solver_order", 3), ("prediction_type", "epsilon"), ("solver_type", "bh1")],
)
def test_another_solver_is_refused(scheduler_class, name, value):
    with pytest.raises(ValueError, match=name):
        scheduler_class(**{name: value})


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"num_inference_steps": 0}, "num_inference_steps"),
        ({}, "num_inference_steps"),
        ({"num_inference_steps": 4, "shift": -1}, "flow_shift"),
        ({"num_inference_steps": 4, "mu": 1.0}, "mu"),
    ],
)
def test_an_impossible_schedule_is_refused(scheduler_class, arguments, field):
    with pytest.raises(ValueError, match=field):
        scheduler_class().set_timesteps(**arguments)


def test_the_shift_cannot_be_set_for_later(scheduler_class):
    with pytest.raises(ValueError, match="set_timesteps"):
        scheduler_class().set_shift(5.0)
