"""Every difference between vLLM-Omni 0.29.0rc1 and 0.30 that matters here. Nothing else tests versions."""

from __future__ import annotations

from typing import Any

import torch
from vllm_omni.diffusion.data import DiffusionOutput

try:
    from vllm_omni.diffusion import media as _media
except ImportError:  # 0.29
    _media = None


def serve(omni: Any, prompt: Any, sampling_params: Any) -> Any:
    """The one output of one request through `Omni.generate`; a refused request leaves the engine usable.

    In 0.30 the generator form keeps the engine and the list form shuts it down. In 0.29 both shut it down, so
    there the request goes the way that `Omni.generate` goes inside.
    """
    if _media is None:
        parameters = omni.resolve_sampling_params_list(sampling_params)
        (output,) = omni._run_generation(prompt, parameters, use_tqdm=False)
    else:
        (output,) = omni.generate(prompt, sampling_params, use_tqdm=False, py_generator=True)
    return output


def video_output(frames: torch.Tensor, **fields: Any) -> DiffusionOutput:
    """The result of a request whose frames are on this rank.

    Args:
        frames: `[B, 3, T, H, W]` in -1..1.
        fields: other fields of `DiffusionOutput`.

    Returns:
        typed media where the engine has it (0.30), the bare tensor elsewhere.
    """
    if _media is None:
        return DiffusionOutput(output=frames, **fields)
    spec = _media.VideoTensorSpec(
        layout=_media.VideoTensorLayout.BCTHW,
        encoding=_media.VideoTensorEncoding.NORMALIZED_FLOAT,
        value_range=_media.VideoValueRange.NEGATIVE_ONE_TO_ONE,
    )
    media = _media.DiffusionMediaOutput(video=_media.VideoMediaOutput(tensor=frames, spec=spec))
    return DiffusionOutput(media=media, **fields)
