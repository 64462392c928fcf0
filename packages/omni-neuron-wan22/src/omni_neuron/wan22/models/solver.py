"""UniPC for flow matching, as plain functions over tensors.

A flow-matching model moves a sample along ``x_sigma = (1 - sigma) * x_0 + sigma * noise`` and predicts the
velocity ``noise - x_0``.  UniPC (Zhao et al., "UniPC: A Unified Predictor-Corrector Framework for Fast
Sampling of Diffusion Models", arXiv:2302.04867) integrates that path in ``lambda = log((1 - sigma) / sigma)``
with a multistep predictor (UniP) and, once the model was evaluated at the predicted point, a corrector (UniC)
that reuses the same evaluation.  Here: data prediction, ``B(h) = exp(h) - 1`` ("bh2"), order at most 2.

All scalars are 0-dimensional fp32 tensors on the CPU and every operation happens in the order of diffusers'
``UniPCMultistepScheduler``, so that results are equal to it bit by bit.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.config import NUM_TRAIN_TIMESTEPS

MAX_ORDER = 2


class FlowSchedule(NamedTuple):
    """Noise levels of one generation.

    ``sigmas``: fp32 ``[N + 1]``, falling, the last one 0.
    ``timesteps``: int64 ``[N]``, what the model is told; truncated, so the first two can be equal.
    """

    sigmas: Tensor
    timesteps: Tensor


def shift_sigmas(sigmas: Tensor, shift: float) -> Tensor:
    """Move noise levels towards 1: ``s * sigma / (1 + (s - 1) * sigma)`` (SD3, arXiv:2403.03206, eq. 23)."""
    return shift * sigmas / (1 + (shift - 1) * sigmas)


def flow_schedule(
    num_steps: int, shift: float, num_train_timesteps: int = NUM_TRAIN_TIMESTEPS
) -> FlowSchedule:
    """The schedule of native Wan2.2 and vLLM-Omni 0.30: N even steps from the top to 0, shifted.

    The end points are those of the *unshifted* training levels; the shift applies once, to the steps.

    Raises:
        InputError: ``num_steps`` below 1 or ``shift`` not a positive number.
    """
    if num_steps < 1:
        raise InputError(f"num_inference_steps is {num_steps}, but a generation needs 1 or more; use 40.")
    if not 0 < shift < float("inf"):
        raise InputError(f"flow_shift is {shift}, but it must be finite and above 0; 5.0 is usual.")
    largest = torch.tensor(1 - 1 / num_train_timesteps, dtype=torch.float32).double()
    step = -largest / num_steps
    sigmas = torch.arange(num_steps, dtype=torch.float64) * step + largest
    sigmas = shift_sigmas(sigmas, shift)
    timesteps = (sigmas * num_train_timesteps).to(torch.int64)
    return FlowSchedule(torch.cat([sigmas, sigmas.new_zeros(1)]).float(), timesteps)


def clean_sample(sample: Tensor, velocity: Tensor, sigma: Tensor) -> Tensor:
    """Estimate of ``x_0``: ``sample - sigma * velocity``, in the sample's dtype.

    ``sigma`` is 0-dimensional, so a bf16 velocity gives a product that is rounded to bf16.
    """
    return sample - sigma.to(sample.device) * velocity


def order_at(index: int, num_steps: int, solver_order: int = MAX_ORDER) -> int:
    """Order of step ``index``: as many estimates as exist by then, and 1 at the last step."""
    return min(solver_order, index + 1, num_steps - index)


class _Interval(NamedTuple):
    """Scalars of one step from ``sigma_s`` down to ``sigma_t``."""

    h: Tensor  # lambda_t - lambda_s
    lambda_s: Tensor
    decay: Tensor  # sigma_t / sigma_s
    alpha_phi: Tensor  # alpha_t * (exp(-h) - 1), which is alpha_t * B(-h) as well


def _log_snr(sigma: Tensor) -> Tensor:
    return torch.log(1 - sigma) - torch.log(sigma)


def _interval(sigma_s: Tensor, sigma_t: Tensor) -> _Interval:
    lambda_s = _log_snr(sigma_s)
    h = _log_snr(sigma_t) - lambda_s
    return _Interval(h, lambda_s, sigma_t / sigma_s, (1 - sigma_t) * torch.expm1(-h))


def _first_order(sample: Tensor, clean: Tensor, step: _Interval) -> Tensor:
    return step.decay.to(sample.device) * sample - step.alpha_phi.to(sample.device) * clean


def _check_order(order: int, estimates: Sequence[Tensor]) -> None:
    if not 1 <= order <= MAX_ORDER:
        raise ValueError(f"solver order is {order}, but only 1 and 2 exist; use solver_order 2.")
    if len(estimates) < order:
        raise ValueError(f"order {order} needs {order} clean estimates, but {len(estimates)} were given.")


def predict(sample: Tensor, estimates: Sequence[Tensor], sigmas: Tensor, index: int, order: int) -> Tensor:
    """UniP: from the (corrected) sample at ``sigmas[index]`` to ``sigmas[index + 1]``.

    ``estimates`` are the outputs of :func:`clean_sample` so far, newest last; shapes as ``sample``.

    Raises:
        ValueError: order outside 1..2, or fewer estimates than the order needs.
    """
    _check_order(order, estimates)
    step = _interval(sigmas[index], sigmas[index + 1])
    newest = estimates[-1]
    moved = _first_order(sample, newest, step)
    if order == 1:
        return moved.to(sample.dtype)
    ratio = (_log_snr(sigmas[index - 1]) - step.lambda_s) / step.h
    slope = (estimates[-2] - newest) / ratio.to(sample.device)
    return (moved - step.alpha_phi.to(sample.device) * (0.5 * slope)).to(sample.dtype)


def correct(
    last_sample: Tensor, estimates: Sequence[Tensor], estimate: Tensor, sigmas: Tensor, index: int, order: int
) -> Tensor:
    """UniC: redo the step ``sigmas[index - 1]`` to ``sigmas[index]`` with the estimate made at its end.

    ``last_sample`` is the sample that step started from, ``estimates`` the clean estimates it used (newest
    last), ``estimate`` the new one at ``sigmas[index]``, ``order`` the order the prediction had.

    Raises:
        ValueError: order outside 1..2, or fewer estimates than the order needs.
    """
    _check_order(order, estimates)
    step = _interval(sigmas[index - 1], sigmas[index])
    newest = estimates[-1]
    device, dtype = last_sample.device, last_sample.dtype
    moved = _first_order(last_sample, newest, step)
    if order == 1:
        correction = 0.5 * (estimate - newest)
    else:
        ratio = (_log_snr(sigmas[index - 2]) - step.lambda_s) / step.h
        slope = (estimates[-2] - newest) / ratio.to(device)
        old, new = _corrector_weights(ratio, step.h).to(device, dtype)
        correction = old * slope + new * (estimate - newest)
    return (moved - step.alpha_phi.to(device) * correction).to(dtype)


def _corrector_weights(ratio: Tensor, h: Tensor) -> Tensor:
    """Solution of the order conditions of UniC-2; fp32 ``[2]``."""
    expm1 = torch.expm1(-h)
    phi_1 = expm1 / -h - 1
    phi_2 = phi_1 / -h - 1 / 2
    ones = torch.ones_like(ratio)
    conditions = torch.stack([torch.stack([ones, ones]), torch.stack([ratio, ones])])
    weights: Tensor = torch.linalg.solve(conditions, torch.stack([phi_1 / expm1, phi_2 * 2 / expm1]))
    return weights
