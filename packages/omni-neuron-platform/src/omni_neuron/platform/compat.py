"""Every difference between vLLM-Omni 0.29.0rc1 and 0.30 that matters here. Nothing else tests versions."""

from __future__ import annotations

from typing import Any

import torch
from vllm_omni.diffusion.data import DiffusionOutput

try:
    from vllm_omni.diffusion import media as _media
except ImportError:  # 0.29
    _media = None


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
