"""A backend for one role, from the stage's configuration through the real engine to the latents."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from engine_process import run_engine
from reference_run import FP32_BAR, relative_l2
from video_cases import GUIDANCE

from omni_neuron.wan22.checkpoint.tiny import tiny_checkpoint

pytestmark = pytest.mark.engine

ONE_RANK = {"tp": 1, "cp": 1, "cfg": 1}
RING = {"tp": 1, "cp": 2, "cfg": 1}
# Guidance multiplies the rounding of both arithmetics by up to 2 * scale - 1: see docs/numerics.md.
UNGUIDED = next(case for case in GUIDANCE if case.name == "guidance-off")


def test_other_arithmetic_changes_the_latents_within_rounding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain operations for one role; and both attention kernels in the interpreter, on two ranks."""
    cross = {"diffusion_attention_config.per_role": {"cross": "FLASH_ATTN"}}
    made = {}
    for name, layout, settings in (
        ("default", ONE_RANK, {}),
        ("cross", ONE_RANK, cross),
        ("kernels", RING, {**cross, "model_config.ring_attention": True}),
    ):
        monkeypatch.setenv("NKI_SIMULATOR", "1" if name == "kernels" else "0")
        folder = tmp_path / name
        results = run_engine(folder, tiny_checkpoint(), layout, "float32", [UNGUIDED], settings=settings)
        made[name] = results.latents[UNGUIDED.name]
    for name in ("cross", "kernels"):
        assert not torch.equal(made[name], made["default"])  # the other arithmetic did run
        assert relative_l2(made[name], made["default"]) <= FP32_BAR
    assert not torch.equal(made["kernels"], made["cross"])
