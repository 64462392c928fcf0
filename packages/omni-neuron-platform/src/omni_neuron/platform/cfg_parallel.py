"""Classifier-free guidance with the two branches on two ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from vllm_omni.diffusion.distributed.cfg_parallel import CFGParallelMixin

from omni_neuron.distributed.cfg_parallel import gather_guidance
from omni_neuron.distributed.groups import ParallelGroup

Prediction = torch.Tensor | tuple[torch.Tensor, ...]


class NeuronCFGParallelMixin(CFGParallelMixin):
    """vLLM-Omni's mixin, with gather and combination as one functional region that a graph can hold.

    A pipeline sets `cfg_group`, and on a device `gather_guidance` to its compiled form: collectives run there
    within a graph only. Everything else than the plain combination over two ranks goes to the stock
    mixin: no guidance, one rank, normalisation, an output slice, a combination of the pipeline's own.
    """

    cfg_group: ParallelGroup
    gather_guidance: Callable[[Any, torch.Tensor, ParallelGroup], Any] = staticmethod(gather_guidance)

    def predict_noise_maybe_with_cfg(
        self,
        do_true_cfg: bool,
        true_cfg_scale: float,
        positive_kwargs: dict[str, Any],
        negative_kwargs: dict[str, Any] | None,
        cfg_normalize: bool = True,
        output_slice: int | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Prediction:
        """Predict noise; guided, `negative + scale * (positive - negative)` in the prediction's dtype.

        Args:
            do_true_cfg: whether to guide.
            true_cfg_scale: the scale.
            positive_kwargs: arguments of `predict_noise` for the prompt.
            negative_kwargs: the same for the negative prompt; may be None without guidance.
            cfg_normalize: whether the result gets the norm of the positive prediction.
            output_slice: how many channels to keep, all when None.
            kwargs: for a combination of the pipeline's own.

        Returns:
            the prediction, the same on every rank; a tuple of them where the model makes several.
        """
        plain = type(self).combine_cfg_noise is CFGParallelMixin.combine_cfg_noise
        if (
            not do_true_cfg
            or self.cfg_group.size == 1
            or cfg_normalize
            or output_slice is not None
            or not plain
        ):
            # The mixin for pipeline parallelism, which may come next, does not know `kwargs`.
            further = {} if kwargs is None else {"kwargs": kwargs}
            return super().predict_noise_maybe_with_cfg(
                do_true_cfg,
                true_cfg_scale,
                positive_kwargs,
                negative_kwargs,
                cfg_normalize=cfg_normalize,
                output_slice=output_slice,
                **further,
            )
        if negative_kwargs is None:
            raise ValueError("negative_kwargs is None, but guidance needs a negative branch; pass them.")
        branch = positive_kwargs if self.cfg_group.rank_in_group == 0 else negative_kwargs
        prediction = self.predict_noise(**branch)
        parts = prediction if isinstance(prediction, tuple) else (prediction,)
        # As a tensor, so that one graph serves every scale.
        scale = torch.tensor(true_cfg_scale, dtype=torch.float32, device=parts[0].device)
        guided = self.gather_guidance(parts, scale, self.cfg_group)
        return guided if len(guided) > 1 else guided[0]
