"""The arguments of `omni-neuron generate`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from omni_neuron.wan22 import request

DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class GenerateOptions:
    """What the user said; None stands for what was left out."""

    prompt: str
    model: Path | None = None
    negative_prompt: str = ""
    height: int | None = None
    width: int | None = None
    num_frames: int | None = None
    steps: int | None = None
    guidance_scale: float | None = None
    guidance_scale_2: float | None = None
    flow_shift: float | None = None
    boundary_ratio: float | None = None
    seed: int | None = None
    tp: int | None = None
    cp: int | None = None
    ulysses: int | None = None
    cfg: int | None = None
    dtype: str | None = None
    stage_config: Path | None = None
    output: Path = Path("out.mp4")
    save_latents: Path | None = None
    json: bool = False

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> Self:
        """The options of parsed arguments."""
        return cls(**{field.name: getattr(args, field.name) for field in fields(cls)})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add every argument, in groups."""
    parser.description = (
        "Make a video from a prompt. Without --model a tiny random-weight Wan2.2 checkpoint is built once "
        "and kept; its videos show that everything works, not a picture of the prompt."
    )
    parser.add_argument("prompt", metavar="PROMPT", help="what the video shows")

    model = parser.add_argument_group("model")
    model.add_argument(
        "--model", type=Path, metavar="DIR", help="a Wan2.2-T2V checkpoint in the diffusers layout"
    )
    model.add_argument("--dtype", choices=DTYPES, help="default: bfloat16 with --model, else float32")
    model.add_argument(
        "--stage-config", type=Path, metavar="FILE", help="a stage file; flags go before its keys"
    )

    video = parser.add_argument_group("video")
    video.add_argument("--negative-prompt", default="", metavar="TEXT", help="what the video stays away from")
    for name, metavar, rule, default, tiny in (
        ("height", "H", "pixels", request.DEFAULT_HEIGHT, 64),
        ("width", "W", "pixels", request.DEFAULT_WIDTH, 64),
        ("num-frames", "F", "4k + 1", request.DEFAULT_FRAMES, 17),
    ):
        text = f"{rule}; default: {default} with --model, else {tiny}"
        video.add_argument(f"--{name}", type=int, metavar=metavar, help=text)
    video.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help=f"denoising steps, 1..{request.MAX_STEPS}; default: {request.DEFAULT_STEPS}",
    )
    video.add_argument(
        "--guidance-scale",
        type=float,
        metavar="G",
        help=f"of the high-noise expert, 0..{request.MAX_GUIDANCE_SCALE:g}; "
        f"default: {request.DEFAULT_GUIDANCE_SCALE}",
    )
    video.add_argument(
        "--guidance-scale-2", type=float, metavar="G2", help="of the low-noise expert; default: G"
    )
    video.add_argument(
        "--flow-shift",
        type=float,
        metavar="S",
        help=f"shift of the schedule, {request.MIN_FLOW_SHIFT:g}..{request.MAX_FLOW_SHIFT:g}; "
        f"default: {request.DEFAULT_FLOW_SHIFT}",
    )
    video.add_argument(
        "--boundary-ratio",
        type=float,
        metavar="R",
        help="noise level at which the low-noise expert takes over, 0..1; "
        f"default: the checkpoint's, else {request.DEFAULT_BOUNDARY_RATIO}",
    )
    video.add_argument("--seed", type=int, metavar="K", help="of the noise; default: 0")

    layout = parser.add_argument_group("layout")
    layout.add_argument("--tp", type=int, metavar="N", help="tensor-parallel ranks; default: 1")
    layout.add_argument("--cp", type=int, metavar="N", help="context-parallel ranks; default: 1")
    layout.add_argument(
        "--ulysses",
        type=int,
        metavar="U",
        help="exchange heads among U of the context-parallel ranks; default: 1",
    )
    layout.add_argument("--cfg", type=int, metavar="N", help="guidance-parallel ranks, 1 or 2; default: 1")

    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        type=Path,
        default=Path("out.mp4"),
        metavar="FILE",
        help="the video; a contact sheet goes beside",
    )
    output.add_argument("--save-latents", type=Path, metavar="FILE", help="the final latents, as safetensors")
    output.add_argument("--json", action="store_true", help="print one line of JSON on standard output")
