"""Runs the diffusers pipeline in a process of its own, and measures against it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from video_cases import Case

SCRIPT = Path(__file__).parents[1] / "reference" / "pipeline.py"
TIMEOUT_S = 900
OUT = "out.safetensors"

# Design section 4: level 3 in fp32; bf16 error beside the reference's own, at the median and at the worst.
FP32_BAR = 3e-6
BF16_MEDIAN_BAR = 1.10
BF16_WORST_BAR = 1.25


def run_reference(
    folder: Path,
    model: Path,
    cases: Sequence[tuple[Case, str]],
    timeout_s: float = TIMEOUT_S,
    *,
    videos: bool = False,
) -> dict[tuple[str, str], torch.Tensor]:
    """Final latents by case name and dtype; with `videos`, `reference_frames` has something to read too."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = [{**case.for_reference(dtype, videos), "name": f"{case.name}/{dtype}"} for case, dtype in cases]
    (folder / "cases.json").write_text(json.dumps(listed))
    command = [
        sys.executable,
        str(SCRIPT),
        str(model),
        str(folder / "cases.json"),
        str(folder / OUT),
    ]
    finished = subprocess.run(
        command,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if finished.returncode != 0:
        raise RuntimeError(f"the reference failed:\n{finished.stderr[-4000:]}")
    tensors = load_file(folder / OUT)
    return {(case.name, dtype): tensors[f"{case.name}/{dtype}.latents"] for case, dtype in cases}


def reference_frames(folder: Path, case: Case, dtype: str) -> torch.Tensor:
    """What `run_reference` decoded into `folder`, as a viewer sees it: `[F, H, W, 3]` uint8."""
    with safe_open(folder / OUT, "pt") as tensors:
        video = tensors.get_tensor(f"{case.name}/{dtype}.video")
    return ((video[0].permute(1, 2, 3, 0) / 2 + 0.5).clamp(0, 1) * 255).round().to(torch.uint8)


def relative_l2(value: torch.Tensor, reference: torch.Tensor) -> float:
    """`|value - reference| / |reference|` in float64."""
    reference = reference.double().flatten()
    return float((value.double().flatten() - reference).norm() / reference.norm())


def bf16_ratios(
    ours: Mapping[str, torch.Tensor],
    reference: Mapping[tuple[str, str], torch.Tensor],
    names: Sequence[str],
) -> list[float]:
    """Our bf16 error over the reference's own, both against the reference in fp32, by case."""
    ratios = []
    for name in names:
        exact = reference[name, "float32"]
        ratios.append(relative_l2(ours[name], exact) / relative_l2(reference[name, "bfloat16"], exact))
    return ratios


def assert_bf16_rule(ratios: Sequence[float]) -> None:
    """Not above 1.10 at the median, nor above 1.25 anywhere."""
    shown = ", ".join(f"{ratio:.3f}" for ratio in ratios)
    assert statistics.median(ratios) <= BF16_MEDIAN_BAR, f"median of {shown}"
    assert max(ratios) <= BF16_WORST_BAR, f"worst of {shown}"
