"""What a text-to-video request may ask for. The command and the engine check by the same rules."""

from __future__ import annotations

import math
from dataclasses import dataclass

from omni_neuron.runtime.errors import InputError

DEFAULT_BOUNDARY_RATIO = 0.875
DEFAULT_FLOW_SHIFT = 5.0
DEFAULT_GUIDANCE_SCALE = 4.0
DEFAULT_STEPS = 40
MAX_SEED = 2**64 - 1
PATCH = 2  # latent pixels of a token, in height and in width


@dataclass(frozen=True)
class VideoRules:
    """What a checkpoint can generate.

    Attributes:
        spatial_scale: pixels per latent pixel, 8 or 16.
        temporal_scale: frames per latent frame after the first.
        latent_channels: channels of the latents.
        two_experts: whether there is an expert of its own for low noise.
    """

    spatial_scale: int = 8
    temporal_scale: int = 4
    latent_channels: int = 16
    two_experts: bool = True

    @property
    def size_multiple(self) -> int:
        """What height and width must be a multiple of, in pixels."""
        return self.spatial_scale * PATCH

    def check_size(self, height: int, width: int) -> None:
        """Refuse a size that does not cut into whole tokens."""
        for name, value in (("height", height), ("width", width)):
            _check_whole(name, value)
            if value < self.size_multiple or value % self.size_multiple:
                lower = max(value // self.size_multiple, 1) * self.size_multiple
                raise InputError(
                    f"{name} is {value}, but this model needs a positive multiple of {self.size_multiple}; "
                    f"the nearest are {lower} and {lower + self.size_multiple}."
                )

    def round_frames(self, num_frames: int) -> tuple[int, str | None]:
        """The number of frames that will be made, and a sentence when it is not the one asked for.

        The first latent frame holds one frame and every other one `temporal_scale`, so the count is rounded
        down to `4k + 1`.
        """
        _check_whole("num_frames", num_frames)
        if num_frames < 1:
            raise InputError(f"num_frames is {num_frames}, but it must be at least 1.")
        rounded = (num_frames - 1) // self.temporal_scale * self.temporal_scale + 1
        if rounded == num_frames:
            return rounded, None
        return rounded, (
            f"num_frames is {num_frames}, which is not {self.temporal_scale}k + 1: rounded down to {rounded}."
        )

    def latent_shape(self, height: int, width: int, num_frames: int) -> tuple[int, int, int, int]:
        """`(C, T, h, w)` of the latents of one video."""
        return (
            self.latent_channels,
            (num_frames - 1) // self.temporal_scale + 1,
            height // self.spatial_scale,
            width // self.spatial_scale,
        )

    def check_latents(self, shape: tuple[int, ...], height: int, width: int, num_frames: int) -> None:
        """Refuse latents that belong to a video of another size."""
        expected = (1, *self.latent_shape(height, width, num_frames))
        if tuple(shape) != expected:
            raise InputError(
                f"latents have shape {tuple(shape)}, but {height}x{width} with {num_frames} frames needs "
                f"{expected}; leave them out, or change the size."
            )

    def check_guidance(self, guidance_scale: float, guidance_scale_2: float | None) -> None:
        """Refuse scales that are not numbers, and a second one without a second expert."""
        for name, value in (("guidance_scale", guidance_scale), ("guidance_scale_2", guidance_scale_2)):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name} is {value}, but it must be a finite number of at least 0.")
        if guidance_scale_2 is not None and not self.two_experts:
            raise InputError(
                f"guidance_scale_2 is {guidance_scale_2}, but this checkpoint has no second expert "
                "(transformer_2); leave it out."
            )


def check_prompt(prompt: str) -> None:
    """Refuse a prompt without a word, or with a character that is none."""
    if not prompt.strip():
        raise InputError(f"prompt is {prompt!r}, but it must have at least one word.")
    check_unicode("prompt", prompt)


def check_unicode(name: str, text: str) -> None:
    """Refuse lone surrogates, which bytes of another encoding become on a command line."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} has {text[error.start]!r} at position {error.start}, which is no character; "
            "write it in UTF-8."
        ) from None


def check_steps(num_inference_steps: int) -> None:
    """Refuse a generation without a step."""
    _check_whole("num_inference_steps", num_inference_steps)
    if num_inference_steps < 1:
        raise InputError(f"num_inference_steps is {num_inference_steps}, but it must be at least 1.")


def check_boundary_ratio(boundary_ratio: float) -> None:
    """Refuse a boundary outside the noise levels."""
    if not 0 <= boundary_ratio <= 1:
        raise InputError(f"boundary_ratio is {boundary_ratio}, but it must lie in 0..1.")


def check_flow_shift(flow_shift: float) -> None:
    """Refuse a shift that is not a positive number."""
    if not (math.isfinite(flow_shift) and flow_shift > 0):
        raise InputError(f"flow_shift is {flow_shift}, but it must be a finite number above 0.")


def check_seed(seed: int) -> None:
    """Refuse a seed that the generator of random numbers cannot take."""
    _check_whole("seed", seed)
    if not 0 <= seed <= MAX_SEED:
        raise InputError(f"seed is {seed}, but it must lie in 0..{MAX_SEED}.")


def _check_whole(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}, but it must be a whole number.")
