"""A generation through vLLM-Omni's `Omni`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from omni_neuron.platform.processes.fork_server import start_fork_server
from omni_neuron.platform.processes.permanent import permanent_imports
from omni_neuron.platform.stage_config import StageConfig, write_deploy_file
from omni_neuron.runtime.errors import InputError, SetupError
from omni_neuron.runtime.mode import detect_mode
from omni_neuron.wan22.generation.streams import undecorate

INIT_TIMEOUT_S = 3600
REPORT_TIMEOUT_S = 60.0


class EngineError(SetupError):
    """The engine or a worker failed, and the input was not at fault."""


@dataclass(frozen=True)
class Generated:
    """What came back.

    Attributes:
        frames: `[T, H, W, 3]` uint8.
        latents: `[C, T, h, w]` fp32, before latent normalisation is undone.
        durations_s: `text_encode`, `denoise` and `vae_decode`.
        latents_sha256: digest of the final latents, by global rank.
        peak_rss_anon_mib: peak of anonymous memory, by global rank.
    """

    frames: np.ndarray[Any, Any]
    latents: torch.Tensor
    durations_s: dict[str, float]
    latents_sha256: list[str]
    peak_rss_anon_mib: list[float]


class Engine:
    """An `Omni` that serves one checkpoint."""

    def __init__(self, model: Path, stage: StageConfig, **arguments: Any) -> None:
        """Start the engine and its workers.

        Args:
            model: folder of the checkpoint.
            stage: the one stage's configuration.
            arguments: further arguments of `Omni`.

        Raises:
            InputError: a worker, or the engine, refused the checkpoint or the configuration.
            EngineError: it could not start.
        """
        start = time.perf_counter()
        on_cpu = detect_mode().is_cpu
        forks = stage.world_size > 1 or stage.get("distributed_executor_backend") == "mp"
        if on_cpu and forks:
            start_fork_server()
        with permanent_imports():
            from vllm_omni.entrypoints.omni import Omni

            if on_cpu:  # on a device the worker alone may import what is in there
                import omni_neuron.platform.processes.preload  # noqa: F401

        with tempfile.TemporaryDirectory(prefix="omni-neuron-") as folder:
            deploy = write_deploy_file(stage, model, Path(folder) / "deploy.yaml")
            try:
                self._omni = Omni(
                    model=str(model),
                    deploy_config=str(deploy),
                    init_timeout=INIT_TIMEOUT_S,
                    stage_init_timeout=INIT_TIMEOUT_S,
                    **arguments,
                )
            except Exception as error:
                raise told(error) from error
        self.startup_s = time.perf_counter() - start

    def generate(self, request: dict[str, Any], **extra_args: Any) -> Generated:
        """Serve one request.

        Args:
            request: `prompt`, `negative_prompt`, and sampling parameters by their names in vLLM-Omni.
            extra_args: for the pipeline, such as `flow_shift`.

        Raises:
            InputError: the engine refused the request.
            EngineError: it failed.
        """
        from vllm_omni.inputs.data import OmniDiffusionSamplingParams

        from omni_neuron.platform.compat import serve

        sampling = {
            name: value for name, value in request.items() if "prompt" not in name and value is not None
        }
        prompt = {
            name: request[name] for name in ("prompt", "negative_prompt") if request.get(name) is not None
        }
        parameters = OmniDiffusionSamplingParams(
            **sampling, output_type="np", extra_args={"return_latents": True, **extra_args}
        )
        try:
            output = serve(self._omni, prompt, parameters)
            reports = self.rank_reports()
        except Exception as error:
            raise told(error) from error
        return Generated(
            frames=_to_uint8(output.images),
            latents=output.latents[0].float().contiguous(),
            durations_s={
                name: output.stage_durations[name] for name in ("text_encode", "denoise", "vae_decode")
            },
            latents_sha256=[report["latents_sha256"] for report in reports],
            peak_rss_anon_mib=[round(report["peak_rss_anon_mib"], 1) for report in reports],
        )

    def rank_reports(self) -> list[dict[str, Any]]:
        """`NeuronDiffusionWorker.rank_reports` of every global rank."""
        (reports,) = self._omni.engine.collective_rpc("rank_reports", timeout=REPORT_TIMEOUT_S)
        return list(reports[0]) if isinstance(reports[0], list) else list(reports)

    def close(self) -> None:
        """End the workers."""
        self._omni.close()


@contextmanager
def running_engine(model: Path, stage: StageConfig, **arguments: Any) -> Iterator[Engine]:
    """An engine for the time of the body."""
    engine = None
    try:
        engine = Engine(model, stage, **arguments)
        yield engine
    finally:
        if engine is not None:
            engine.close()
        undecorate()


def told(error: Exception) -> InputError | EngineError:
    """What to tell the caller of a failure that the engine has wrapped.

    Bad input is an InputError in it, or the error by which the engine tells a client of a bad request.
    """
    from vllm_omni.errors import OmniClientError

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, InputError | OmniClientError):
            return InputError(str(cause))
        cause = cause.__cause__
    reason, cause = str(error), error.__cause__
    while cause is not None and str(cause) and reason.endswith(str(cause)):
        reason, cause = str(cause), cause.__cause__
    return EngineError(reason or type(error).__name__)


def _to_uint8(images: Any) -> np.ndarray[Any, Any]:
    frames = np.asarray(images[0] if isinstance(images, list) else images)
    if frames.ndim == 5:
        frames = frames[0]
    return frames if frames.dtype == np.uint8 else (frames * 255.0).round().clip(0, 255).astype(np.uint8)
