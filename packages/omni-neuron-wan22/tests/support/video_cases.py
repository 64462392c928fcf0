"""The requests by which layouts are compared with the reference pipeline."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Case:
    """One request, in the words of tests/reference/pipeline.py."""

    name: str
    prompt: str = "a red ball rolling over grass"
    negative_prompt: str | None = "blurry, grey"
    height: int = 64
    width: int = 64
    num_frames: int = 17
    steps: int = 4
    seed: int = 0
    guidance_scale: float = 4.0
    guidance_scale_2: float | None = 3.0
    flow_shift: float = 5.0
    boundary_ratio: float | None = None

    def for_reference(self, dtype: str, video: bool) -> dict[str, Any]:
        return {**asdict(self), "dtype": dtype, "video": video}

    def request(self) -> dict[str, Any]:
        """By the names of the engine's sampling parameters, without the shift, which is an extra argument."""
        fields = asdict(self)
        del fields["name"], fields["flow_shift"]
        fields["num_inference_steps"] = fields.pop("steps")
        return fields


BASE = Case("base")
# With shift 5 and four steps the boundary 0.875 leaves two steps to each expert, so both guidances count.
GUIDANCE = [
    replace(BASE, name="guidance-high-only", guidance_scale=4.0, guidance_scale_2=1.0),
    replace(BASE, name="guidance-low-only", guidance_scale=1.0, guidance_scale_2=4.0),
    replace(BASE, name="guidance-off", guidance_scale=1.0, guidance_scale_2=1.0),
]
STEPS = [replace(BASE, name=f"steps-{steps}", steps=steps, flow_shift=12.0) for steps in (1, 4, 100)]
# 5 x 3 x 5 = 75 tokens: no degree above one divides them.
ODD_LENGTH = replace(BASE, name="odd-length", height=48, width=80)
BOUNDARY = replace(BASE, name="boundary", boundary_ratio=0.6)
SEEDS = [replace(BASE, name=f"seed-{seed}", seed=seed) for seed in range(8)]

END_TO_END = [BASE, ODD_LENGTH]
FP32 = [BASE, *GUIDANCE, *STEPS, ODD_LENGTH, BOUNDARY]
BF16 = [*SEEDS, ODD_LENGTH]
