"""The engine's flow UniPC scheduler, with our solver's arithmetic."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from vllm_omni.diffusion.models.schedulers import FlowUniPCMultistepScheduler

from omni_neuron.wan22.models.config import NUM_TRAIN_TIMESTEPS
from omni_neuron.wan22.models.solver import (
    MAX_ORDER,
    clean_sample,
    correct,
    flow_schedule,
    predict,
)


class NeuronFlowUniPCMultistepScheduler(FlowUniPCMultistepScheduler):
    """vLLM-Omni's scheduler whose steps are :mod:`omni_neuron.wan22.models.solver`.

    It differs from its base in three ways:

    * it counts its steps from 0 instead of looking the first timestep up, because with many steps and a large
      shift the first two timesteps are equal and the look-up ends one step early in a failed assertion;
    * the corrector's scalars are fp32 whatever torch's default dtype is;
    * it is built with shift 1, so that a shift passed to :meth:`set_timesteps` is applied once on every
      version of the engine.

    Raises:
        ValueError: an argument outside the solver that exists here (bh2, order 1 or 2, flow prediction).
    """

    def __init__(
        self,
        num_train_timesteps: int = NUM_TRAIN_TIMESTEPS,
        solver_order: int = MAX_ORDER,
        prediction_type: str = "flow_prediction",
        shift: float = 1.0,
        solver_type: str = "bh2",
    ) -> None:
        if shift != 1.0:
            raise ValueError(
                f"shift is {shift}, but the scheduler is built with 1; pass it to set_timesteps."
            )
        if solver_order not in range(1, MAX_ORDER + 1):
            raise ValueError(f"solver_order is {solver_order}, but only 1 and 2 exist; use 2.")
        if prediction_type != "flow_prediction":
            raise ValueError(f"prediction_type is {prediction_type!r}, but Wan needs 'flow_prediction'.")
        if solver_type != "bh2":
            raise ValueError(f"solver_type is {solver_type!r}, but only 'bh2' exists here.")
        super().__init__(
            num_train_timesteps=num_train_timesteps,
            solver_order=solver_order,
            prediction_type=prediction_type,
            shift=shift,
            solver_type=solver_type,
        )

    def set_shift(self, shift: float) -> None:
        """Refused: the shift belongs to one generation, see :meth:`set_timesteps`."""
        raise ValueError(f"shift {shift} cannot be set on the scheduler; pass it to set_timesteps.")

    def set_timesteps(
        self,
        num_inference_steps: int | None = None,
        device: str | torch.device | None = None,
        sigmas: Any = None,
        mu: float | None = None,
        shift: float | None = None,
    ) -> None:
        """Start a generation of ``num_inference_steps`` steps; the solver's memory is emptied.

        Args:
            num_inference_steps: number of steps, at least 1; follows from ``sigmas`` if those are given.
            device: where ``timesteps`` (int64 ``[N]``) go; ``sigmas`` (fp32 ``[N + 1]``) stay on the CPU.
            sigmas: noise levels before the shift, without the final 0, instead of even steps.
            mu: belongs to dynamic shifting, which does not exist here.
            shift: flow shift, 1 unless given.

        Raises:
            ValueError: fewer than 1 step, a shift that is not positive, or ``mu``.
        """
        if mu is not None:
            raise ValueError(f"mu is {mu}, but Wan has no dynamic shifting; pass shift instead.")
        shift = 1.0 if shift is None else float(shift)
        if sigmas is not None:
            super().set_timesteps(device=device, sigmas=np.asarray(sigmas, dtype=np.float64), shift=shift)
        else:
            if num_inference_steps is None:
                raise ValueError("num_inference_steps is missing, but needed without sigmas; pass 1 or more.")
            schedule = flow_schedule(num_inference_steps, shift, self.config.num_train_timesteps)
            super().set_timesteps(num_inference_steps, device=device, shift=shift)
            self.sigmas = schedule.sigmas
            self.timesteps = schedule.timesteps.to(device=device)
        self.set_begin_index(0)

    def convert_model_output(self, model_output: Tensor, *, sample: Tensor) -> Tensor:
        """Clean-sample estimate at the current step, in the sample's dtype."""
        return clean_sample(sample, model_output, self.sigmas[self.step_index])

    def multistep_uni_p_bh_update(self, model_output: Tensor, *, sample: Tensor, order: int) -> Tensor:
        """Sample at the next noise level; the estimates come from the solver's memory."""
        return predict(sample, self._estimates(), self.sigmas, self.step_index, order)

    def multistep_uni_c_bh_update(
        self, this_model_output: Tensor, *, last_sample: Tensor, this_sample: Tensor, order: int
    ) -> Tensor:
        """Corrected sample at the current noise level; ``this_sample`` is what it replaces."""
        return correct(last_sample, self._estimates(), this_model_output, self.sigmas, self.step_index, order)

    def _estimates(self) -> list[Tensor]:
        return [estimate for estimate in self.model_outputs if estimate is not None]
