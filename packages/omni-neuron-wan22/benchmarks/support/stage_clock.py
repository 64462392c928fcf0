"""A worker extension that times the stages of a request, in any Wan pipeline, by the same clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from safetensors.torch import save_file
from vllm_omni.diffusion.worker.diffusion_worker import CustomPipelineWorkerExtension

STAGES = {"encode_prompt": "text", "diffuse": "denoise", "vae.decode": "decode", "predict_noise": "forward"}


class StageClock(CustomPipelineWorkerExtension):  # type: ignore[misc]
    """Watches the pipeline from outside: the class, its code and its results stay as they are."""

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        super().load_model(*args, **kwargs)
        self._seconds: dict[str, list[float]] = {}
        self._cpu: list[float] = []
        pipeline = self.model_runner.pipeline
        if pipeline is not None:
            for path, stage in STAGES.items():
                *owners, name = path.split(".")
                owner = getattr(pipeline, owners[0]) if owners else pipeline
                setattr(owner, name, self._timed(getattr(owner, name), stage))
            pipeline.forward = self._whole(pipeline.forward)

    def take_times(self, latents: str | None = None) -> dict[str, Any]:
        """Seconds by stage of the last request, `cpu` for the processor time of the whole pipeline.

        `latents` is a file to write its final latents to.
        """
        if latents is not None:
            save_file({"latents": self._latents.float().contiguous()}, latents)
        seconds, self._seconds = self._seconds, {}
        forwards = seconds.pop("forward")
        return {
            **{stage: sum(values) for stage, values in seconds.items()},
            "forward": sorted(forwards)[len(forwards) // 2],
            "cpu": self._cpu[-1],
            "threads": torch.get_num_threads(),
        }

    def _timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            result = function(*args, **kwargs)
            self._seconds.setdefault(stage, []).append(time.perf_counter() - start)
            if stage == "denoise":
                self._latents = result
            return result

        return timed

    def _whole(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def whole(*args: Any, **kwargs: Any) -> Any:
            self._seconds.clear()
            wall, start = time.perf_counter(), time.process_time()
            result = function(*args, **kwargs)
            self._cpu.append(time.process_time() - start)
            self._seconds["pipeline"] = [time.perf_counter() - wall]
            return result

        return whole
