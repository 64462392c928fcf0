"""What a text-to-video request may ask for. The command and the engine check by the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.models.config import NUM_TRAIN_TIMESTEPS, TEXT_LENGTH

DEFAULT_HEIGHT = 480
DEFAULT_WIDTH = 832
DEFAULT_FRAMES = 81
DEFAULT_BOUNDARY_RATIO = 0.875
DEFAULT_FLOW_SHIFT = 5.0
DEFAULT_GUIDANCE_SCALE = 4.0
DEFAULT_STEPS = 40
MAX_STEPS = NUM_TRAIN_TIMESTEPS  # more steps would repeat noise levels that the model knows
MAX_GUIDANCE_SCALE = 1000.0  # far above any picture, far below an overflow of bfloat16
# Within these every noise level and its logarithm are finite, and apart, in fp32 at any number of steps.
MIN_FLOW_SHIFT, MAX_FLOW_SHIFT = 0.01, 100.0
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
        max_positions: tokens along time, height or width that the transformer has a position for, the
            smallest `rope_max_seq_len` of the experts. A token is one latent frame of 2 x 2 latent pixels.
    """

    spatial_scale: int = 8
    temporal_scale: int = 4
    latent_channels: int = 16
    two_experts: bool = True
    max_positions: int = 1024

    @property
    def size_multiple(self) -> int:
        """What height and width must be a multiple of, in pixels."""
        return self.spatial_scale * PATCH

    @property
    def max_size(self) -> int:
        """Largest height and width, in pixels."""
        return self.max_positions * self.size_multiple

    @property
    def max_frames(self) -> int:
        """Largest number of frames."""
        return (self.max_positions - 1) * self.temporal_scale + 1

    def check_size(self, height: int, width: int) -> None:
        """Refuse a size that cuts into no whole tokens, or into more than the model has positions for."""
        for name, value in (("height", height), ("width", width)):
            _check_whole(name, value)
            if value > self.max_size:
                raise InputError(
                    f"{name} is {value}, but it must be at most {self.max_size}, as this model has "
                    f"{self.max_positions} positions (rope_max_seq_len) of {self.size_multiple} pixels; "
                    "make it smaller."
                )
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

        Raises:
            InputError: there is none, or more than the model has positions for.
        """
        _check_whole("num_frames", num_frames)
        if num_frames < 1:
            raise InputError(f"num_frames is {num_frames}, but it must be at least 1.")
        rounded = (num_frames - 1) // self.temporal_scale * self.temporal_scale + 1
        if rounded > self.max_frames:
            raise InputError(
                f"num_frames is {num_frames}, but it must be at most {self.max_frames}, as this model has "
                f"{self.max_positions} positions (rope_max_seq_len) of {self.temporal_scale} frames; "
                "make it smaller."
            )
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

    def check_latents(
        self, shape: tuple[int, ...], height: int, width: int, num_frames: int, videos: int = 1
    ) -> None:
        """Refuse latents that belong to another size, or to another number of videos."""
        expected = (videos, *self.latent_shape(height, width, num_frames))
        if tuple(shape) != expected:
            raise InputError(
                f"latents have shape {tuple(shape)}, but {height}x{width} with {num_frames} frames and "
                f"num_outputs_per_prompt {videos} needs {expected}; leave them out, or change either."
            )

    def check_guidance(self, guidance_scale: float, guidance_scale_2: float | None) -> None:
        """Refuse scales beyond any use, and a second one without a second expert."""
        for name, value in (("guidance_scale", guidance_scale), ("guidance_scale_2", guidance_scale_2)):
            if value is not None:
                _check_number(name, value, 0, MAX_GUIDANCE_SCALE)
        self._check_second_expert("guidance_scale_2", guidance_scale_2)

    def check_boundary(self, boundary_ratio: float | None) -> None:
        """Refuse a boundary outside the noise levels, or between experts of which there is one."""
        if boundary_ratio is not None:
            check_boundary_ratio(boundary_ratio)
        self._check_second_expert("boundary_ratio", boundary_ratio)

    def _check_second_expert(self, name: str, value: float | None) -> None:
        if value is not None and not self.two_experts:
            raise InputError(
                f"{name} is {value}, but this checkpoint has no second expert (transformer_2); leave it out."
            )


def check_sampling(rules: VideoRules, asked: Mapping[str, Any]) -> tuple[int, str | None]:
    """Check everything that a request says in numbers.

    Args:
        rules: those of the checkpoint.
        asked: by the names of the engine's sampling parameters, with `flow_shift` and `boundary_ratio`; what
            is None was left out. Height, width, `num_frames` and `guidance_scale` are there.

    Returns:
        as `VideoRules.round_frames`.

    Raises:
        InputError: the first value that breaks its rule.
    """
    rules.check_size(asked["height"], asked["width"])
    for name, check in (
        ("num_inference_steps", check_steps),
        ("flow_shift", check_flow_shift),
        ("max_sequence_length", check_text_length),
        ("seed", check_seed),
        ("num_outputs_per_prompt", check_outputs),
    ):
        if asked.get(name) is not None:
            check(asked[name])
    rules.check_guidance(asked["guidance_scale"], asked.get("guidance_scale_2"))
    rules.check_boundary(asked.get("boundary_ratio"))
    return rules.round_frames(asked["num_frames"])


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
    """Refuse a generation without a step, or with more than the noise levels of the training."""
    _check_whole("num_inference_steps", num_inference_steps, 1, MAX_STEPS)


def check_outputs(num_outputs_per_prompt: int) -> None:
    """Refuse a request for less than one video."""
    _check_whole("num_outputs_per_prompt", num_outputs_per_prompt)
    if num_outputs_per_prompt < 1:
        raise InputError(f"num_outputs_per_prompt is {num_outputs_per_prompt}, but it must be at least 1.")


def check_text_length(max_sequence_length: int) -> None:
    """Refuse a length of prompts, in tokens, above the one that Wan was trained with."""
    _check_whole("max_sequence_length", max_sequence_length, 1, TEXT_LENGTH)


def check_boundary_ratio(boundary_ratio: float) -> None:
    """Refuse a boundary outside the noise levels."""
    _check_number("boundary_ratio", boundary_ratio, 0, 1)


def check_flow_shift(flow_shift: float) -> None:
    """Refuse a shift with which noise levels would fall together."""
    _check_number("flow_shift", flow_shift, MIN_FLOW_SHIFT, MAX_FLOW_SHIFT)


def check_seed(seed: int) -> None:
    """Refuse a seed that the generator of random numbers cannot take."""
    _check_whole("seed", seed, 0, MAX_SEED)


def _check_whole(name: str, value: object, least: int | None = None, most: int | None = None) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}, but it must be a whole number.")
    if least is not None and most is not None and not least <= value <= most:
        raise InputError(f"{name} is {value}, but it must lie in {least}..{most}.")


def _check_number(name: str, value: object, least: float, most: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}, but it must be a number.")
    if not least <= value <= most:  # which nan is not
        raise InputError(f"{name} is {value}, but it must lie in {least:g}..{most:g}.")
