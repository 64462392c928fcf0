"""Loads a pipeline on the host, moves it to the core, compiles it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from vllm.config import LoadConfig
from vllm.logger import init_logger
from vllm_omni.diffusion.model_loader.diffusers_loader import DiffusersPipelineLoader
from vllm_omni.diffusion.worker.diffusion_model_runner import DiffusionModelRunner
from vllm_omni.platforms import current_omni_platform

from omni_neuron.platform.config_check import refuse_stock_context_parallelism
from omni_neuron.platform.stage_config import WARM_UP_KEY
from omni_neuron.runtime.errors import InputError

logger = init_logger(__name__)

HOST = torch.device("cpu")


class NeuronDiffusionModelRunner(DiffusionModelRunner):
    """vLLM-Omni's runner; only loading, compiling and the place of random numbers differ."""

    # Capture of tensors, once it exists, hooks the modules before `_compile`, so that its hooks are traced,
    # and wraps `predict_noise` after it.

    def load_model(
        self,
        memory_pool_context_fn: Callable[[str], AbstractContextManager[Any]] | None = None,
        load_format: str = "default",
        custom_pipeline_name: str | None = None,
    ) -> None:
        """Build the pipeline with its weights in host memory, then move and compile it.

        Casts and layout changes happen on the host: an eager device copy can do neither.

        Args:
            memory_pool_context_fn: where the engine wants weights allocated; Neuron has no such pools.
            load_format: "default", "custom_pipeline", or "dummy", which loads nothing now because a custom
                pipeline follows.
            custom_pipeline_name: dotted path of the class for "custom_pipeline".
        """
        if load_format == "dummy":
            return
        current_omni_platform.init_diffusion_model_runner_runtime(
            vllm_config=self.vllm_config, od_config=self.od_config, device=self.device
        )
        loader = DiffusersPipelineLoader(LoadConfig(), od_config=self.od_config)
        pipeline = loader.load_model(
            load_device=str(HOST),
            load_format=load_format,
            custom_pipeline_name=custom_pipeline_name,
            device=HOST,
        )
        refuse_stock_context_parallelism(pipeline, self.od_config)
        self.pipeline = pipeline.to(self.device)
        self._compile()
        self._warm_up()
        logger.info("Loaded %s.", type(pipeline).__name__)

    def _compile(self) -> None:
        backend = current_omni_platform.get_compile_backend()
        if backend is None or self.od_config.enforce_eager:
            return
        compile_components = getattr(self.pipeline, "compile_components", None)
        if compile_components is None:
            raise InputError(
                f"{type(self.pipeline).__name__} cannot be compiled for Neuron: it has no compile_components "
                "method; use a pipeline of an omni-neuron model package, or set enforce_eager."
            )
        compile_components(backend)

    @torch.inference_mode()
    def _warm_up(self) -> None:
        """Run every component once, so that the first request finds its graphs compiled."""
        size = (self.od_config.additional_config or {}).get(WARM_UP_KEY)
        if size is None:
            return
        warm_up = getattr(self.pipeline, "warm_up", None)
        if warm_up is None:
            raise InputError(
                f"skip_warmup is false, but {type(self.pipeline).__name__} has no warm-up; set it to true."
            )
        warm_up(**size)

    def _initialize_generator(self, sampling_params: Any) -> None:
        """Seed on the host unless the caller brings a generator or names its device.

        Noise drawn on the host is the same for every layout and every device.
        """
        if sampling_params.generator is None and sampling_params.generator_device is None:
            sampling_params.generator_device = HOST.type
        super()._initialize_generator(sampling_params)
