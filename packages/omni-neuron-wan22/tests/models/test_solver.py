"""The schedule against published tables, and the solver against paths whose end is known."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from omni_neuron.wan22.models.solver import clean_sample, correct, flow_schedule, order_at, predict

SHIFT_12 = """999 997 995 993 990 988 985 982 979 976 972 969 965 961 956 952 947 941 936 929
922 915 907 898 888 877 865 852 837 819 799 776 749 717 678 631 571 492 386 235"""
SHIFT_5 = """999 994 989 983 978 972 965 959 952 944 937 929 920 911 902 892 882 870 859 846
833 818 803 786 768 749 728 706 681 654 624 591 555 514 468 416 356 288 208 113"""


@pytest.mark.parametrize(("shift", "table"), [(12, SHIFT_12), (5, SHIFT_5)])
def test_forty_steps_are_the_published_ones(shift, table):
    assert flow_schedule(40, shift).timesteps.tolist() == [int(word) for word in table.split()]


def test_shift_3_begins_and_ends_as_published():
    timesteps = flow_schedule(40, 3).timesteps.tolist()
    assert timesteps[:5] == [999, 991, 982, 973, 963]
    assert timesteps[-2:] == [136, 71]


@pytest.mark.parametrize(
    ("shift", "boundary", "steps", "high_noise"),
    [
        (12, 0.875, 40, 26),
        (5, 0.875, 40, 17),
        (5, 0.9, 40, 15),
        (3, 0.875, 40, 12),
        (3, 0.9, 40, 10),
        (3, 0.875, 50, 15),
        (12, 0.875, 4, 3),
    ],
)
def test_number_of_high_noise_steps(shift, boundary, steps, high_noise):
    timesteps = flow_schedule(steps, shift).timesteps
    assert int((timesteps >= boundary * 1000).sum()) == high_noise


@given(st.integers(1, 200), st.floats(0.1, 20))
def test_a_schedule_falls_from_the_largest_trained_level_to_zero(steps, shift):
    sigmas, timesteps = flow_schedule(steps, shift)
    assert sigmas.dtype == torch.float32
    assert timesteps.dtype == torch.int64
    assert sigmas.shape == (steps + 1,)
    assert timesteps.shape == (steps,)
    assert (sigmas.diff() < 0).all()
    assert sigmas[-1] == 0
    assert sigmas[0].item() == pytest.approx(shift * 0.999 / (1 + (shift - 1) * 0.999), rel=1e-6)


@pytest.mark.parametrize(("steps", "shift", "field"), [(0, 5, "num_inference_steps"), (4, 0, "flow_shift")])
def test_an_impossible_schedule_is_refused(steps, shift, field):
    with pytest.raises(ValueError, match=field):
        flow_schedule(steps, shift)


def test_orders_grow_and_the_last_step_is_first_order():
    assert [order_at(index, 5) for index in range(5)] == [1, 2, 2, 2, 1]
    assert [order_at(index, 1) for index in range(1)] == [1]
    assert [order_at(index, 2) for index in range(2)] == [1, 1]


def integrate(velocity, sample, schedule):
    """The whole loop; returns every predicted sample."""
    sigmas, _ = schedule
    num_steps = len(sigmas) - 1
    estimates, samples, start, order = [], [sample], None, 1
    for index in range(num_steps):
        estimate = clean_sample(sample, velocity(sample, sigmas[index]), sigmas[index])
        if start is not None:
            sample = correct(start, estimates, estimate, sigmas, index, order)
        estimates, start, order = [*estimates, estimate][-2:], sample, order_at(index, num_steps)
        sample = predict(sample, estimates, sigmas, index, order)
        samples.append(sample)
    return samples


def test_a_point_distribution_is_solved_exactly():
    """With all data at one point the clean estimate is constant, and every order is exact."""
    generator = torch.Generator().manual_seed(0)
    clean, noise = torch.randn(2, 2, 3, 4, 5, 6, generator=generator).unbind(0)
    schedule = flow_schedule(7, 5)
    first = schedule.sigmas[0]
    samples = integrate(lambda x, sigma: (x - clean) / sigma, (1 - first) * clean + first * noise, schedule)
    for sigma, sample in zip(schedule.sigmas[1:], samples[1:], strict=True):
        torch.testing.assert_close(sample, (1 - sigma) * clean + sigma * noise, rtol=1e-5, atol=1e-5)


def gaussian_error(num_steps):
    """Error before the jump to sigma 0, for data from N(0, 0.5^2), whose paths are known; float64."""
    spread = 0.5
    sigmas, timesteps = flow_schedule(num_steps, 3)
    sigmas = sigmas.double()
    deviation = ((1 - sigmas) ** 2 * spread**2 + sigmas**2).sqrt()

    def velocity(x, sigma):
        # E[noise - x_0 | x] for Gaussian data
        return x * (sigma - (1 - sigma) * spread**2) / ((1 - sigma) ** 2 * spread**2 + sigma**2)

    start = torch.ones(1, 1, 1, 1, 1, dtype=torch.float64) * deviation[0]
    samples = integrate(velocity, start, (sigmas, timesteps))
    # A fixed noise level, which every multiple of 20 steps visits.
    return abs(samples[num_steps // 2] / deviation[num_steps // 2] - 1).item()


def test_more_steps_converge_with_the_order_of_the_method():
    """An order-2 predictor with its corrector has order 3: twice the steps, an eighth of the error."""
    errors = [gaussian_error(steps) for steps in (20, 40, 80)]
    assert errors[0] / errors[1] > 6
    assert errors[1] / errors[2] > 6


def test_sigma_times_velocity_is_rounded_to_the_models_dtype():
    sample = torch.zeros(4)
    velocity = torch.full((4,), 1.0078125, dtype=torch.bfloat16)
    sigma = torch.tensor(0.3)
    result = clean_sample(sample, velocity, sigma)
    assert result.dtype == torch.float32
    assert torch.equal(result, -(sigma * velocity.float()).bfloat16().float())


@pytest.mark.parametrize("order", [0, 3])
def test_other_orders_are_refused(order):
    sample = torch.zeros(1)
    with pytest.raises(ValueError, match="order"):
        predict(sample, [sample] * 3, flow_schedule(4, 5).sigmas, 1, order)


def test_too_few_estimates_are_refused():
    sample = torch.zeros(1)
    with pytest.raises(ValueError, match="estimates"):
        correct(sample, [sample], sample, flow_schedule(4, 5).sigmas, 2, 2)
