"""diffusers' WanPipeline over given cases: ``python pipeline.py CHECKPOINT CASES.json OUT.safetensors``.

The reference of whole requests, in a process of its own.  CASES.json is a list of objects:

    name                      of the case
    prompt, negative_prompt   text; negative_prompt may be null
    height, width, num_frames, steps, seed
    guidance_scale, guidance_scale_2    the second may be null: as the first
    flow_shift
    boundary_ratio            null: the checkpoint's
    dtype                     "float32" or "bfloat16", of all components (diffusers keeps parts of the
                              transformer in fp32)
    video                     true to decode, false by default

OUT gets ``<name>.latents``, fp32 ``[1, C, T, h, w]`` before the normalisation is undone, and on request
``<name>.video``, fp32 ``[1, 3, F, H, W]`` in -1..1.

It differs from diffusers where the engine does: the schedule, the cleaning of prompts (whitespace only), and
a stage has a negative branch exactly when its guidance is above 1.
"""

import json
import sys
from pathlib import Path

import torch
from diffusers import UniPCMultistepScheduler, WanPipeline
from diffusers.pipelines.wan import pipeline_wan
from diffusers.video_processor import VideoProcessor
from safetensors.torch import save_file

from omni_neuron.wan22.models.solver import flow_schedule


def clean_prompt(text: str) -> str:
    return " ".join(text.split())


class GivenSchedule(UniPCMultistepScheduler):
    """diffusers' solver on our noise levels; ``shift`` is set before each request."""

    shift = 1.0

    def set_timesteps(self, num_inference_steps, device=None, **kwargs):
        super().set_timesteps(num_inference_steps, device=device, **kwargs)
        self.sigmas, self.timesteps = flow_schedule(num_inference_steps, self.shift)


class RawVideo(VideoProcessor):
    """Hands the decoder's output on as it is."""

    def postprocess_video(self, video, output_type="np"):
        return video


class ReferencePipeline(WanPipeline):
    """WanPipeline with guidance decided by stage."""

    @property
    def do_classifier_free_guidance(self) -> bool:
        first, second = self._guidance_scale, self._guidance_scale_2
        timestep, boundary = self._current_timestep, self.config.boundary_ratio
        if boundary is None:
            return first > 1
        if timestep is None:  # while the prompts are encoded
            return max(first, second) > 1
        high_noise = timestep >= boundary * self.scheduler.config.num_train_timesteps
        return (first if high_noise else second) > 1


def load(folder: str, dtype: str) -> ReferencePipeline:
    pipeline = ReferencePipeline.from_pretrained(folder, dtype=getattr(torch, dtype), local_files_only=True)
    pipeline.scheduler = GivenSchedule.from_config(pipeline.scheduler.config)
    pipeline.video_processor = RawVideo(vae_scale_factor=pipeline.vae_scale_factor_spatial)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def run(pipeline: ReferencePipeline, boundary_ratio: float | None, case: dict) -> dict[str, torch.Tensor]:
    channels = pipeline.vae.config.z_dim
    spatial, temporal = pipeline.vae_scale_factor_spatial, pipeline.vae_scale_factor_temporal
    shape = (
        1,
        channels,
        (case["num_frames"] - 1) // temporal + 1,
        case["height"] // spatial,
        case["width"] // spatial,
    )
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(case["seed"]), dtype=torch.float32)
    chosen = case.get("boundary_ratio")
    pipeline.register_to_config(boundary_ratio=boundary_ratio if chosen is None else chosen)
    pipeline.scheduler.shift = case["flow_shift"]
    steps: list[torch.Tensor] = []

    def keep(_pipeline, _index, _timestep, tensors):
        steps.append(tensors["latents"])
        return tensors

    video = pipeline(
        prompt=case["prompt"],
        negative_prompt=case.get("negative_prompt"),
        height=case["height"],
        width=case["width"],
        num_frames=case["num_frames"],
        num_inference_steps=case["steps"],
        guidance_scale=case["guidance_scale"],
        guidance_scale_2=case.get("guidance_scale_2"),
        latents=noise,
        output_type="raw" if case.get("video") else "latent",
        callback_on_step_end=keep,
        return_dict=False,
    )[0]
    schedule = flow_schedule(case["steps"], case["flow_shift"])
    if not torch.equal(pipeline.scheduler.sigmas, schedule.sigmas):
        raise RuntimeError(f"case {case['name']} ran on other sigmas")
    if len(steps) != case["steps"] or steps[-1].dtype != torch.float32:
        raise RuntimeError(f"case {case['name']}: {len(steps)} steps, latents in {steps[-1].dtype}")
    results = {f"{case['name']}.latents": steps[-1].contiguous()}
    if case.get("video"):
        results[f"{case['name']}.video"] = video.float().contiguous()
    return results


def main(folder: str, cases_path: str, out_path: str) -> None:
    pipeline_wan.prompt_clean = clean_prompt
    boundary_ratio = json.loads((Path(folder) / "model_index.json").read_text()).get("boundary_ratio")
    cases = json.loads(Path(cases_path).read_text())
    results: dict[str, torch.Tensor] = {}
    for dtype in sorted({case["dtype"] for case in cases}):
        pipeline = load(folder, dtype)
        for case in cases:
            if case["dtype"] == dtype:
                results |= run(pipeline, boundary_ratio, case)
    if "vllm" in sys.modules:
        raise RuntimeError("the reference must not import vllm, which changes classes of diffusers")
    save_file(results, out_path)


if __name__ == "__main__":
    main(*sys.argv[1:])
