"""Wan2.2 text-to-video in vLLM-Omni's engine."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from typing import Any

import torch
import torch.distributed as dist
from diffusers.utils.torch_utils import randn_tensor
from torch import nn
from vllm_omni.diffusion.data import DiffusionOutput
from vllm_omni.diffusion.distributed.utils import get_local_device
from vllm_omni.diffusion.models.wan2_2.pipeline_wan2_2 import (
    Wan22Pipeline,
    get_wan22_post_process_func,
    resolve_wan_flow_shift,
    resolve_wan_guidance_scales,
)
from vllm_omni.diffusion.worker.request_batch import DiffusionRequestBatch, split_diffusion_output_by_request
from vllm_omni.platforms import current_omni_platform

from omni_neuron.distributed.rank_agreement import check_rank_agreement, world_group
from omni_neuron.platform.cfg_parallel import NeuronCFGParallelMixin
from omni_neuron.platform.compat import video_output
from omni_neuron.platform.parallel import parallel_context
from omni_neuron.runtime.memory_peak import AnonymousMemoryPeak
from omni_neuron.wan22 import envs
from omni_neuron.wan22.models.config import TEXT_LENGTH
from omni_neuron.wan22.models.transformer import WanTransformer3DModel
from omni_neuron.wan22.pipelines.compile import (
    compile_decoder,
    compile_encoder,
    compile_guidance,
    compile_transformer,
)
from omni_neuron.wan22.pipelines.components import WanComponents, build_components, load_components
from omni_neuron.wan22.pipelines.offload import needs_offload, offloaded
from omni_neuron.wan22.pipelines.preprocess import get_wan22_pre_process_func
from omni_neuron.wan22.pipelines.progress import DenoiseProgress
from omni_neuron.wan22.pipelines.scheduler import NeuronFlowUniPCMultistepScheduler
from omni_neuron.wan22.request import DEFAULT_BOUNDARY_RATIO, DEFAULT_GUIDANCE_SCALE, DEFAULT_STEPS

# The engine looks these two up in the module of the pipeline.
__all__ = ["NeuronWanPipeline", "get_wan22_post_process_func", "get_wan22_pre_process_func"]

HOST = torch.device("cpu")
LATENT_DTYPE = torch.float32


class NeuronWanPipeline(NeuronCFGParallelMixin, Wan22Pipeline):
    """One request: encode the prompts, denoise with the expert of each noise level, decode the video.

    The latents and the solver stay on the host in fp32; only the model's input is cast and moved. Every rank
    starts from the same noise and takes the same steps, so all ranks hold the same latents at the end.

    Attributes:
        latents_sha256: digest of the last request's final latents, contiguous and fp32.
        load_rise_mib: how far anonymous memory rose above where it stood before the weights were read.
    """

    dummy_run_num_frames = 0  # the engine's own warm-up request is of a fixed size; see `warm_up`
    supports_request_batch = False

    def __init__(self, *, od_config: Any, prefix: str = "") -> None:
        nn.Module.__init__(self)
        self.od_config = od_config
        self.device = get_local_device()
        self.parallel = parallel_context(od_config.model_config)
        self.cfg_group = self.parallel.cfg
        parts: WanComponents = build_components(od_config, self.parallel)
        self.checkpoint = parts.checkpoint
        self.tokenizer = parts.text_encoder.tokenizer
        self.text_encoder = parts.text_encoder
        self.transformer = parts.transformer
        self.transformer_2 = parts.transformer_2
        self.vae = parts.vae
        self.scheduler = NeuronFlowUniPCMultistepScheduler()
        self.weights_sources: list[Any] = []
        self.boundary_ratio = od_config.boundary_ratio
        self.transformer_config = self._experts[0].config
        self.vae_scale_factor_temporal = self.vae.config.scale_factor_temporal
        self.vae_scale_factor_spatial = self.vae.config.scale_factor_spatial
        self.expand_timesteps = False
        self.is_dmd = False
        self.latents_sha256: str | None = None
        self.load_rise_mib: float | None = None
        self._guidance_scale: float | None = None
        self._guidance_scale_2: float | None = None
        self._num_timesteps: int | None = None
        self._current_timestep: torch.Tensor | None = None
        self.setup_diffusion_pipeline_profiler(
            enable_diffusion_pipeline_profiler=od_config.enable_diffusion_pipeline_profiler
        )

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Read this rank's shards of every component; the engine's own weight iterator is empty.

        Returns:
            the names of all parameters.

        Raises:
            CheckpointError: lists every tensor that is missing, extra or of another shape.
        """
        peak = AnonymousMemoryPeak()
        try:
            load_components(self)
            self.load_rise_mib = peak.rise_mib()
        finally:
            peak.stop()
        return {name for name, _ in self.named_parameters()}

    def compile_components(self, backend: str) -> None:
        """Compile what runs on the device; the decoder only on the rank that decodes."""
        for name in ("transformer", "transformer_2"):
            transformer = getattr(self, name)
            if transformer is not None:
                compile_transformer(transformer, backend, name)
        compile_encoder(self.text_encoder.encoder, backend)
        self.gather_guidance = compile_guidance(type(self).gather_guidance, backend)
        if self._decodes:
            compile_decoder(self.vae, backend)

    @property
    def _experts(self) -> list[WanTransformer3DModel]:
        """Those that were built, high noise first."""
        return [expert for expert in (self.transformer, self.transformer_2) if expert is not None]

    @property
    def _decodes(self) -> bool:
        return not dist.is_initialized() or dist.get_rank() == 0

    def progress_bar(self, iterable: Any = None, total: int | None = None) -> Any:
        """Progress of one request's steps, shown by the rank that decodes."""
        if total is None:
            return super().progress_bar(iterable)
        disabled = getattr(self, "_progress_bar_config", {}).get("disable", False)
        return DenoiseProgress(total, enabled=self._decodes and not disabled)

    def encode_prompt(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
        """See `NeuronTextEncoderWrapper.encode_prompt`."""
        return self.text_encoder.encode_prompt(*args, **kwargs)

    def prepare_latents(
        self,
        batch_size: int,
        num_channels_latents: int,
        height: int,
        width: int,
        num_frames: int,
        dtype: torch.dtype | None,
        device: torch.device | None,
        generator: torch.Generator | list[torch.Generator] | None,
        latents: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The noise of a request in fp32 on the host, drawn once, or the latents that it brings.

        Returns:
            `[batch_size, C, T, h, w]`.

        Raises:
            InputError: given latents do not fit the size.
        """
        rules = self.checkpoint.rules
        if latents is not None:
            rules.check_latents(tuple(latents.shape), height, width, num_frames, batch_size)
            return latents.to(HOST, LATENT_DTYPE)
        shape = (batch_size, *rules.latent_shape(height, width, num_frames))
        return randn_tensor(shape, generator=generator, device=HOST, dtype=LATENT_DTYPE)

    def predict_noise(self, current_model: nn.Module | None = None, **kwargs: Any) -> torch.Tensor:
        """Velocity `[B, C, T, h, w]` at a noise level, in the model's dtype, on the device."""
        model = current_model or self._experts[0]
        prediction: torch.Tensor = model(
            kwargs["hidden_states"].to(self.device),
            kwargs["timestep"].to(self.device),
            kwargs["encoder_hidden_states"],
        )
        return prediction

    def scheduler_step_maybe_with_cfg(
        self,
        noise_pred: torch.Tensor,
        t: torch.Tensor,
        latents: torch.Tensor,
        do_true_cfg: bool,
        **kwargs: Any,
    ) -> torch.Tensor:
        """One solver step on the host."""
        return super().scheduler_step_maybe_with_cfg(
            noise_pred.to(latents.device), t, latents, do_true_cfg, **kwargs
        )

    def forward(self, req: DiffusionRequestBatch) -> list[DiffusionOutput]:
        """Serve one request.

        Returns:
            one output: on rank 0 the video, or the latents when `output_type` is "latent"; elsewhere an empty
            tensor. `stage_durations` has seconds; `trajectory_latents` has the final latents when the
            request's `extra_args` ask for `return_latents`.
        """
        sampling = req.sampling_params
        durations: dict[str, float] = {}
        guidance_low, guidance_high = resolve_wan_guidance_scales(sampling, DEFAULT_GUIDANCE_SCALE)
        self._guidance_scale, self._guidance_scale_2 = guidance_low, guidance_high
        guided = guidance_low > 1.0 or guidance_high > 1.0

        with _timed(durations, "text_encode"):
            positive, negative = self._embeddings(req, guided)
        latents = self.prepare_latents(
            batch_size=positive.shape[0],
            num_channels_latents=self.checkpoint.rules.latent_channels,
            height=sampling.height,
            width=sampling.width,
            num_frames=sampling.num_frames,
            dtype=LATENT_DTYPE,
            device=HOST,
            generator=req.collate_request_generators(sampling.num_outputs_per_prompt or 1, None),
            latents=req.collate_request_tensors("latents", None),
        )
        steps = DEFAULT_STEPS if sampling.num_inference_steps is None else sampling.num_inference_steps
        self.scheduler.set_timesteps(
            steps, device=HOST, shift=resolve_wan_flow_shift(req.requests[0], self.od_config)
        )
        self._num_timesteps = len(self.scheduler.timesteps)

        with _timed(durations, "denoise"):
            latents = self.diffuse(
                latents=latents,
                timesteps=self.scheduler.timesteps,
                prompt_embeds=positive,
                negative_prompt_embeds=negative,
                guidance_low=guidance_low,
                guidance_high=guidance_high,
                boundary_timestep=self._boundary_timestep(sampling.boundary_ratio),
                dtype=self._experts[0].dtype,
                attention_kwargs={},
            )
        self._current_timestep = None
        check_rank_agreement("latents", latents, world_group(), enabled=envs.check_ranks())
        self.latents_sha256 = sha256(latents.contiguous().numpy().tobytes()).hexdigest()

        with _timed(durations, "vae_decode"):
            output = self._output(latents, sampling.output_type or "np")
        output.stage_durations = durations
        outputs = split_diffusion_output_by_request(
            output, req, num_outputs_per_prompt=sampling.num_outputs_per_prompt or 1
        )
        if (sampling.extra_args or {}).get("return_latents"):
            outputs[0].trajectory_latents = latents
        return outputs

    def warm_up(self, height: int, width: int, num_frames: int) -> None:
        """Run every component once at one size, so that its graphs exist before the first request."""
        positive, negative = self.encode_prompt("warm up")
        latents = torch.zeros(1, *self.checkpoint.rules.latent_shape(height, width, num_frames))
        for expert in self._experts:
            inputs = {
                "hidden_states": latents.to(expert.dtype),
                "timestep": torch.zeros(1, dtype=torch.int64),
                "current_model": expert,
            }
            self.predict_noise_maybe_with_cfg(
                do_true_cfg=True,
                true_cfg_scale=DEFAULT_GUIDANCE_SCALE,
                positive_kwargs={**inputs, "encoder_hidden_states": positive},
                negative_kwargs={**inputs, "encoder_hidden_states": negative},
                cfg_normalize=False,
            )
        if self._decodes:
            self._decode(latents)

    def _embeddings(
        self, req: DiffusionRequestBatch, guided: bool
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        sampling, prompt = req.sampling_params, req.prompts[0]
        fields = {"prompt": prompt} if isinstance(prompt, str) else prompt
        return self.encode_prompt(
            prompt=fields.get("prompt") or "",
            negative_prompt=fields.get("negative_prompt"),
            do_classifier_free_guidance=guided,
            num_videos_per_prompt=sampling.num_outputs_per_prompt or 1,
            max_sequence_length=sampling.max_sequence_length or TEXT_LENGTH,
            device=self.device,
            dtype=self._experts[0].dtype,
        )

    def _boundary_timestep(self, requested: float | None) -> float | None:
        """Timestep below which the low-noise expert takes over.

        The ratio is that of the request, else the configuration's, the checkpoint's, the default.
        """
        if not self.checkpoint.rules.two_experts:
            return None
        candidates = (requested, self.boundary_ratio, self.checkpoint.boundary_ratio, DEFAULT_BOUNDARY_RATIO)
        ratio = next(candidate for candidate in candidates if candidate is not None)
        return float(ratio * self.scheduler.config.num_train_timesteps)

    def _output(self, latents: torch.Tensor, output_type: str) -> DiffusionOutput:
        if not self._decodes:
            return DiffusionOutput(output=latents.new_empty(latents.shape[0], 0))
        if output_type == "latent":
            return DiffusionOutput(output=latents)
        return video_output(self._decode(latents))

    def _decode(self, latents: torch.Tensor) -> torch.Tensor:
        """Frames `[B, 3, T, H, W]` in -1..1 on the host."""
        config, dtype = self.vae.config, self.vae.dtype
        z = latents.to(dtype)
        mean = torch.tensor(config.latents_mean, dtype=dtype).view(1, -1, 1, 1, 1)
        # The reciprocal is rounded before it divides, as in the reference.
        inverse_std = (1.0 / torch.tensor(config.latents_std)).to(dtype).view(1, -1, 1, 1, 1)
        z = (z / inverse_std + mean).to(self.device)
        with offloaded(self._experts, HOST) if needs_offload(self.device) else nullcontext():
            frames: torch.Tensor = self.vae.decode(z, return_dict=False)[0]
            return frames.to(HOST)


@contextmanager
def _timed(durations: dict[str, float], stage: str) -> Iterator[None]:
    """Add the wall time of the body, in seconds, with the device's queue drained before and after."""
    current_omni_platform.synchronize()
    start = time.perf_counter()
    yield
    current_omni_platform.synchronize()
    durations[stage] = time.perf_counter() - start
