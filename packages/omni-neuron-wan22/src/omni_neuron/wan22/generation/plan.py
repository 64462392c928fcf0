"""Everything about a generation that can be decided, and refused, before an engine starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omni_neuron.distributed.context_parallel import ulysses_heads
from omni_neuron.distributed.errors import ShardingError, shard_size
from omni_neuron.platform.stage_config import StageConfig, apply_overrides, read_stage_config
from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.checkpoint.check import check_checkpoint
from omni_neuron.wan22.checkpoint.layout import WanCheckpoint, read_checkpoint
from omni_neuron.wan22.checkpoint.tiny import tiny_checkpoint
from omni_neuron.wan22.generation.options import GenerateOptions
from omni_neuron.wan22.media.latents import check_latents_path
from omni_neuron.wan22.media.output import check_writable
from omni_neuron.wan22.media.video import check_video
from omni_neuron.wan22.models.config import WanConfig
from omni_neuron.wan22.models.umt5_config import UMT5Config
from omni_neuron.wan22.request import (
    DEFAULT_FRAMES,
    DEFAULT_GUIDANCE_SCALE,
    DEFAULT_HEIGHT,
    DEFAULT_STEPS,
    DEFAULT_WIDTH,
    check_prompt,
    check_sampling,
    check_unicode,
)
from omni_neuron.wan22.user_path import expanded

FPS = 16  # of the native Wan2.2 A14B videos


@dataclass(frozen=True)
class SizeDefaults:
    """What a model makes when nobody says otherwise."""

    height: int
    width: int
    num_frames: int
    dtype: str


TINY = SizeDefaults(64, 64, 17, "float32")
PUBLISHED = SizeDefaults(DEFAULT_HEIGHT, DEFAULT_WIDTH, DEFAULT_FRAMES, "bfloat16")


@dataclass(frozen=True)
class GenerationPlan:
    """One generation, complete and checked.

    Attributes:
        checkpoint: what is loaded.
        stage: the engine's configuration.
        request: prompt and sampling parameters by their names in the engine.
        video, contact_sheet: the files that will be written.
        latents: where the final latents go, or None.
        notes: sentences for the user.
    """

    checkpoint: WanCheckpoint
    stage: StageConfig
    request: dict[str, Any]
    video: Path
    contact_sheet: Path
    latents: Path | None
    notes: tuple[str, ...]

    @property
    def layout(self) -> dict[str, int]:
        """Degrees by their short names."""
        stage = self.stage
        return {
            "tp": stage.tensor_parallel_size,
            "cp": stage.context_parallel_size,
            "cfg": stage.cfg_parallel_size,
        }


def plan_generation(options: GenerateOptions) -> GenerationPlan:
    """Resolve and check the options: flag, else stage file, else checkpoint, else default.

    Raises:
        InputError: an option breaks a rule, alone or together with the checkpoint or the stage file.
        CheckpointError: the checkpoint's tensors are not those of its configuration; all are listed.
    """
    check_prompt(options.prompt)
    check_unicode("negative_prompt", options.negative_prompt)
    file = StageConfig()
    if options.stage_config is not None:
        file = read_stage_config(expanded("stage_config", options.stage_config))
    stage, notes = apply_overrides(file, _overrides(options, file))
    video, contact_sheet, latents = _outputs(options, stage.get("fps", FPS))
    defaults = TINY if options.model is None else PUBLISHED
    if stage.get("dtype") is None:
        stage, _ = apply_overrides(stage, {"dtype": defaults.dtype})
    checkpoint = read_checkpoint(tiny_checkpoint() if options.model is None else options.model)
    _check_apart(checkpoint, video, contact_sheet, latents)
    request, more = _request(options, stage, checkpoint, defaults)
    try:
        _check_heads(checkpoint, stage.tensor_parallel_size, stage.ulysses_degree)
    except ShardingError as error:
        if options.model is not None:
            raise
        sentence = str(error).removesuffix(".")
        raise InputError(f"{sentence}; this is the tiny checkpoint, as --model is not given.") from None
    check_checkpoint(checkpoint)
    return GenerationPlan(
        checkpoint=checkpoint,
        stage=stage,
        request=request,
        video=video,
        contact_sheet=contact_sheet,
        latents=latents,
        notes=(*notes, *more),
    )


def _outputs(options: GenerateOptions, fps: float) -> tuple[Path, Path, Path | None]:
    """The video, its contact sheet beside it, and the latents; all can be written."""
    video = expanded("output", options.output)
    check_video(video, fps)
    latents = None if options.save_latents is None else expanded("save_latents", options.save_latents)
    if latents is not None:
        check_latents_path(latents)
    contact_sheet = video.with_suffix(".png")
    for path in (video, contact_sheet, latents):
        if path is not None:
            check_writable(path)
    return video, contact_sheet, latents


def _check_apart(checkpoint: WanCheckpoint, *outputs: Path | None) -> None:
    """Nothing is written among the files that are read, also where those are linked from elsewhere."""
    parts = (*checkpoint.experts, "text_encoder", "tokenizer", "scheduler", "vae")
    folders = [(checkpoint.folder / part).resolve() for part in ("", *parts)]
    for path in outputs:
        place = None if path is None else path.parent.resolve()
        if place is not None and any(place.is_relative_to(folder) for folder in folders):
            raise InputError(
                f"{path} lies in the checkpoint {checkpoint.folder}, which is only read; "
                "choose a path outside of it."
            )


def _overrides(options: GenerateOptions, file: StageConfig) -> dict[str, object]:
    """Flags by the names of the stage file's keys."""
    return {
        "tensor_parallel_size": options.tp,
        "ulysses_degree": options.ulysses,
        "ring_degree": _ring_degree(options, file),
        "cfg_parallel_size": options.cfg,
        "dtype": options.dtype,
        "boundary_ratio": options.boundary_ratio,
        "flow_shift": options.flow_shift,
        "height": options.height,
        "width": options.width,
        "num_frames": options.num_frames,
        "num_inference_steps": options.steps,
        "guidance_scale": options.guidance_scale,
        "guidance_scale_2": options.guidance_scale_2,
        "seed": options.seed,
    }


def _ring_degree(options: GenerateOptions, file: StageConfig) -> int | None:
    """What is left of `--cp` for the ring; None where neither flag was given."""
    if options.cp is None and options.ulysses is None:
        return None
    cp = file.context_parallel_size if options.cp is None else options.cp
    ulysses = file.ulysses_degree if options.ulysses is None else options.ulysses
    if cp < 1:
        raise InputError(f"cp is {cp}, but it must be at least 1; use --cp 1 for no context parallelism.")
    if ulysses < 1 or cp % ulysses:
        raise InputError(
            f"ulysses is {ulysses}, but it must be at least 1 and divide the {cp} context-parallel ranks; "
            f"use --cp with a multiple of it, or another --ulysses."
        )
    return cp // ulysses


def _request(
    options: GenerateOptions, stage: StageConfig, checkpoint: WanCheckpoint, defaults: SizeDefaults
) -> tuple[dict[str, Any], list[str]]:
    request: dict[str, Any] = {
        "height": defaults.height,
        "width": defaults.width,
        "num_frames": defaults.num_frames,
        "num_inference_steps": DEFAULT_STEPS,
        "guidance_scale": DEFAULT_GUIDANCE_SCALE,
        "guidance_scale_2": None,
        "seed": 0,
        "fps": FPS,
        **stage.request_defaults,
    }
    of_engine = {name: stage.get(name) for name in ("flow_shift", "boundary_ratio")}
    request["num_frames"], note = check_sampling(checkpoint.rules, {**request, **of_engine})
    prompts = {"prompt": options.prompt, "negative_prompt": options.negative_prompt}
    return {**prompts, **request}, [note] if note else []


def _check_heads(checkpoint: WanCheckpoint, tp: int, ulysses: int) -> None:
    for expert in checkpoint.experts:
        config = WanConfig.from_json_file(checkpoint.folder / expert / "config.json")
        ulysses_heads(shard_size("num_attention_heads", config.num_attention_heads, tp), ulysses)
        shard_size("ffn_dim", config.ffn_dim, tp)
    encoder = UMT5Config.from_json_file(checkpoint.folder / "text_encoder" / "config.json")
    shard_size("num_heads of the text encoder", encoder.num_heads, tp)
    shard_size("d_ff of the text encoder", encoder.d_ff, tp)
