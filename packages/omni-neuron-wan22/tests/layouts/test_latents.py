"""Every layout beside diffusers, in fp32 and in bf16."""

from __future__ import annotations

from hashlib import sha256

import pytest
import torch
from engine_process import EngineResults
from layout_table import Distance
from reference_run import BF16_WORST_BAR, FP32_BAR, assert_bf16_rule, bf16_ratios, relative_l2
from video_cases import BF16, FP32, SEEDS

pytestmark = pytest.mark.layouts


def check_ranks(results: EngineResults, world: int) -> None:
    """All ranks hold the same bytes, those of the latents that came back."""
    for name, latents in results.latents.items():
        digest = sha256(latents.float().contiguous().numpy().tobytes()).hexdigest()
        assert results.digests[name] == [digest] * world, name


def world_size(degrees: dict[str, int]) -> int:
    return degrees["tp"] * degrees["cp"] * degrees["cfg"]


def test_fp32_latents_are_those_of_diffusers(layout, degrees, engines, reference):
    results, row = engines(layout, "float32")
    assert results.latents.keys() == {case.name for case in FP32}
    for name, latents in results.latents.items():
        assert latents.dtype == torch.float32
        distance = relative_l2(latents, reference[name, "float32"])
        row.distances.append(Distance(name, distance, results.seconds[name]))
    assert {d.case: d.value for d in row.distances if not d.value <= FP32_BAR} == {}
    check_ranks(results, world_size(degrees))


def test_bf16_latents_are_as_near_as_those_of_diffusers(layout, degrees, engines, reference):
    results, row = engines(layout, "bfloat16")
    names = [case.name for case in BF16]
    assert results.latents.keys() == set(names)
    ratios = dict(zip(names, bf16_ratios(results.latents, reference, names), strict=True))
    row.distances += [Distance(name, ratio, results.seconds[name]) for name, ratio in ratios.items()]
    assert all(latents.dtype == torch.float32 for latents in results.latents.values())
    assert_bf16_rule([ratios[case.name] for case in SEEDS])
    assert {name: ratio for name, ratio in ratios.items() if not ratio <= BF16_WORST_BAR} == {}
    check_ranks(results, world_size(degrees))
