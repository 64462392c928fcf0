"""Whole requests through the real engine in three layouts, beside diffusers in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from engine_process import EngineResults, run_engine
from reference_run import FP32_BAR, relative_l2, run_reference
from video_cases import END_TO_END

from omni_neuron.runtime.accuracy import assert_three_way
from omni_neuron.runtime.mode import detect_mode
from omni_neuron.wan22.checkpoint.tiny import tiny_checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.hardware]

LAYOUTS = [
    {"tp": 1, "cp": 1, "cfg": 1},
    {"tp": 2, "cp": 1, "cfg": 1},
    {"tp": 2, "cp": 2, "cfg": 2},
]
Latents = dict[tuple[str, str], torch.Tensor]


HARDWARE = detect_mode().is_hardware
DTYPES = ["float32", "bfloat16"] if HARDWARE else ["float32"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Latents:
    cases = [(case, dtype) for case in END_TO_END for dtype in DTYPES]
    return run_reference(tmp_path_factory.mktemp("reference"), tiny_checkpoint(), cases)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: "x".join(f"{k}{v}" for k, v in layout.items()))
def test_the_latents_are_those_of_diffusers_on_every_rank(
    layout: dict[str, int], reference: Latents, tmp_path: Path
) -> None:
    """In fp32 on the CPU; on a device in bf16, which may err as diffusers in bf16 does."""
    results: EngineResults = run_engine(tmp_path, tiny_checkpoint(), layout, DTYPES[-1], END_TO_END)
    world = layout["tp"] * layout["cp"] * layout["cfg"]
    for case in END_TO_END:
        ours, exact = results.latents[case.name], reference[case.name, "float32"]
        if HARDWARE:
            assert_three_way(exact, reference[case.name, "bfloat16"], ours.view_as(exact))
        else:
            assert relative_l2(ours, exact) <= FP32_BAR
        assert len(results.digests[case.name]) == world
        assert len(set(results.digests[case.name])) == 1
