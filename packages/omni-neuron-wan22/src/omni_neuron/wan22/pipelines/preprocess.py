"""What the engine does to a request before any worker sees it: check it, and fill in what it left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vllm.logger import init_logger
from vllm_omni.diffusion.models.wan2_2.pipeline_wan2_2 import (
    get_wan22_pre_process_func as stock_pre_process_func,
)
from vllm_omni.errors import OmniClientError

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.checkpoint.layout import read_checkpoint
from omni_neuron.wan22.pipelines.attention import check_roles
from omni_neuron.wan22.request import (
    DEFAULT_FRAMES,
    DEFAULT_HEIGHT,
    DEFAULT_WIDTH,
    VideoRules,
    check_boundary_ratio,
    check_flow_shift,
    check_prompt,
    check_sampling,
    check_unicode,
)

logger = init_logger(__name__)

SOLVER = "unipc"


def get_wan22_pre_process_func(od_config: Any) -> Callable[[Any], Any]:
    """Factory that the engine calls once, for the checkpoint that it serves.

    What it returns raises OmniClientError for a bad request: a ValueError that the engine hands to the caller
    as one, and to a server as status 400; of other errors it keeps only the message.
    """
    rules = read_checkpoint(od_config.model).rules
    loaded_for = od_config.boundary_ratio
    if loaded_for is not None:
        check_boundary_ratio(loaded_for)
    if od_config.flow_shift is not None:
        check_flow_shift(od_config.flow_shift)
    check_roles(od_config.diffusion_attention_config)
    stock = stock_pre_process_func(od_config)

    def pre_process(request: Any) -> Any:
        try:
            _refuse_images(request.prompt)  # the stock function would open and resize them
            _refuse_unused(request)
            request = stock(request)
            _check(request, rules)
            _check_expert_is_loaded(request.sampling_params.boundary_ratio, loaded_for)
        except InputError as error:
            raise OmniClientError(str(error)) from error
        return request

    return pre_process


def _check(request: Any, rules: VideoRules) -> None:
    sampling, prompt = request.sampling_params, request.prompt
    check_prompt(prompt if isinstance(prompt, str) else prompt.get("prompt") or "")
    negative = None if isinstance(prompt, str) else prompt.get("negative_prompt")
    if isinstance(negative, str):
        check_unicode("negative_prompt", negative)
    sampling.height = DEFAULT_HEIGHT if sampling.height is None else sampling.height
    sampling.width = DEFAULT_WIDTH if sampling.width is None else sampling.width
    sampling.num_frames = DEFAULT_FRAMES if sampling.num_frames is None else sampling.num_frames
    extra = sampling.extra_args or {}
    second = sampling.guidance_scale_2 if sampling.guidance_scale_2_provided else None
    asked = {**vars(sampling), "guidance_scale_2": second, "flow_shift": extra.get("flow_shift")}
    sampling.num_frames, note = check_sampling(rules, asked)
    if note is not None:
        logger.warning(note)
    if extra.get("sample_solver", SOLVER) != SOLVER:
        raise InputError(
            f"sample_solver is {extra['sample_solver']!r}, but only {SOLVER!r} exists; leave it out."
        )
    if sampling.latents is not None:
        size = (sampling.height, sampling.width, sampling.num_frames)
        rules.check_latents(tuple(sampling.latents.shape), *size, sampling.num_outputs_per_prompt or 1)


def _check_expert_is_loaded(asked: float | None, loaded_for: float | None) -> None:
    """A stage whose boundary is 0 or 1 has loaded one of two experts, and can move to no other boundary."""
    if asked is not None and loaded_for in (0.0, 1.0) and asked != loaded_for:
        raise InputError(
            f"boundary_ratio is {asked}, but this stage was started with {loaded_for}, which loads one "
            "expert only; leave it out, or change the stage."
        )


def _refuse_unused(request: Any) -> None:
    """Refuse what the stock pipeline or another one would act on, and this one does not."""
    sampling = request.sampling_params
    fields = {} if isinstance(request.prompt, str) else request.prompt
    asked = {name: fields.get(name) for name in ("prompt_embeds", "negative_prompt_embeds")}
    asked |= {name: getattr(sampling, name) for name in ("sigmas", "timesteps")}
    asked["preencode_mp4"] = (sampling.extra_args or {}).get("preencode_mp4") or None
    for name, value in asked.items():
        if value is not None:
            raise InputError(f"the request brings {name}, but nothing here acts on it; leave it out.")


def _refuse_images(prompt: Any) -> None:
    if not isinstance(prompt, str) and (prompt.get("multi_modal_data") or {}).get("image") is not None:
        raise InputError(
            "the request brings an image, but this pipeline makes videos from text only; leave it out."
        )
