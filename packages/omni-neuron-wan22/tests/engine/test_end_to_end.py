"""Whole requests through the real engine in three layouts, beside diffusers in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from engine_process import EngineResults, run_engine
from reference_run import FP32_BAR, reference_frames, relative_l2, run_reference
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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reference")


@pytest.fixture(scope="module")
def reference(folder: Path) -> Latents:
    cases = [(case, dtype) for case in END_TO_END for dtype in DTYPES]
    return run_reference(folder, tiny_checkpoint(), cases, videos=True)


def assert_same_frames(ours: torch.Tensor, reference: torch.Tensor) -> None:
    """In 8 bits, what is as near in float32 as the bar asks.

    Values lie in -1..1, where a level is 2 / 255. With a relative error of the bar, their mean error is at
    most 127.5 times the bar, in levels: less than one, so that rounding can part two values by one level
    only, and it parts them as often as that error on average.
    """
    assert ours.shape == reference.shape
    assert float(((reference > 0) & (reference < 255)).float().mean()) > 0.5  # not merely cut off alike
    apart = (ours.int() - reference.int()).abs()
    assert int(apart.max()) <= 1
    assert float(apart.float().mean()) <= 127.5 * FP32_BAR


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: "x".join(f"{k}{v}" for k, v in layout.items()))
def test_latents_and_frames_are_those_of_diffusers_and_latents_the_same_on_every_rank(
    layout: dict[str, int], reference: Latents, folder: Path, tmp_path: Path
) -> None:
    """In fp32 on the CPU; on a device the latents in bf16, which may err as diffusers in bf16 does."""
    results: EngineResults = run_engine(tmp_path, tiny_checkpoint(), layout, DTYPES[-1], END_TO_END)
    world = layout["tp"] * layout["cp"] * layout["cfg"]
    for case in END_TO_END:
        ours, exact = results.latents[case.name], reference[case.name, "float32"]
        if HARDWARE:
            assert_three_way(exact, reference[case.name, "bfloat16"], ours.view_as(exact))
        else:
            assert relative_l2(ours, exact) <= FP32_BAR
            assert_same_frames(results.frames[case.name], reference_frames(folder, case, "float32"))
        assert len(results.digests[case.name]) == world
        assert len(set(results.digests[case.name])) == 1
