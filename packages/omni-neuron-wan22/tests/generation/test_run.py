"""Plan, run, write, report: with an engine that answers at once, so that files and streams are seen alone."""

import json
import os
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from report_line import KEYS, STAGES
from safetensors.torch import load_file

from omni_neuron.platform.stage_config import StageConfig
from omni_neuron.wan22.checkpoint.tiny import TinyGeometry, build_checkpoint
from omni_neuron.wan22.generation import run
from omni_neuron.wan22.generation.engine import EngineError, Generated
from omni_neuron.wan22.generation.options import GenerateOptions

LATENTS = torch.randn(16, 2, 8, 8, generator=torch.Generator().manual_seed(0))


class PromptEngine:
    """Answers every request with the same video, or fails."""

    startup_s = 1.5

    def __init__(self, failure=None, frames=None):
        self.requests = []
        self._failure = failure
        self._frames = np.zeros((5, 64, 64, 3), np.uint8) if frames is None else frames

    def generate(self, request):
        self.requests.append(request)
        print("a word of the engine")
        if self._failure is not None:
            raise self._failure
        return Generated(
            frames=self._frames,
            latents=LATENTS,
            durations_s={"text_encode": 0.25, "denoise": 0.5, "vae_decode": 0.125},
            latents_sha256=[sha256(LATENTS.numpy().tobytes()).hexdigest()] * 2,
            peak_rss_anon_mib=[10.0, 11.5],
        )


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    build_checkpoint(folder, TinyGeometry())
    return folder


@pytest.fixture
def generate(checkpoint, tmp_path, monkeypatch, capfd):
    """Runs the verb in an empty folder; returns what stood on standard output."""
    monkeypatch.chdir(tmp_path)
    for variable in ("VLLM_NEURON_CPU_MODE", "VLLM_LOGGING_LEVEL", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(variable, os.environ.get(variable, ""))

    def call(engine, **given):
        @contextmanager
        def running(model, stage):
            yield engine

        monkeypatch.setattr(run, "running_engine", running)
        size = {"height": 64, "width": 64, "num_frames": 5, "dtype": "float32"}
        try:
            run.generate(GenerateOptions("a ball", model=checkpoint, **size, **given))
        finally:
            call.stdout, call.stderr = capfd.readouterr()
        return call.stdout

    return call


def test_json_is_one_line_with_exactly_these_keys(generate, tmp_path):
    stdout = generate(PromptEngine(), json=True, tp=2, seed=3, save_latents=Path("l.safetensors"))
    (line,) = [text for text in stdout.splitlines() if text != "a word of the engine"]
    report = json.loads(line)
    assert list(report) == KEYS
    assert list(report["timings_s"]) == [*STAGES, "total"]
    assert report["timings_s"]["startup"] == 1.5
    assert report["layout"] == {"tp": 2, "cp": 1, "cfg": 1}
    assert (report["video"], report["contact_sheet"], report["latents"]) == (
        "out.mp4",
        "out.png",
        "l.safetensors",
    )
    assert (report["dtype"], report["seed"]) == ("float32", 3)
    assert report["peak_rss_anon_mib"] == [10.0, 11.5]
    latents = load_file(tmp_path / "l.safetensors")["latents"]
    assert report["latents_sha256"] == [sha256(latents.numpy().tobytes()).hexdigest()] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.safetensors", "out.mp4", "out.png"]


def test_without_json_the_files_are_all(generate, tmp_path):
    assert "{" not in generate(PromptEngine())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.mp4", "out.png"]


def test_what_the_user_is_told(generate):
    generate(PromptEngine(), save_latents=None)
    assert "5 frames of 64x64, 40 steps, float32, tp1 x cp1 x cfg1" in generate.stderr
    assert "wrote out.mp4 and out.png" in generate.stderr
    assert "ulysses" not in generate.stderr
    generate(PromptEngine(), tp=2, cp=4, ulysses=2)
    assert "tp2 x cp4 x cfg1 (ulysses2)" in generate.stderr


@pytest.mark.parametrize(("cores", "warned"), [(1, True), (2, False)])
def test_far_more_workers_than_cores_are_one_line_of_warning(generate, monkeypatch, cores, warned):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    generate(PromptEngine(), tp=4, cp=2)
    lines = [line for line in generate.stderr.splitlines() if line.startswith("warning: ")]
    assert len(lines) == warned
    assert all("takes 8 workers, and this machine has 1 CPU cores" in line for line in lines)
    assert generate.stderr.index("starting the engine") > generate.stderr.find("warning: ")


@pytest.mark.parametrize("failure", [EngineError("a worker died."), KeyboardInterrupt()])
def test_a_failure_passes_and_leaves_no_file(generate, tmp_path, failure):
    with pytest.raises(type(failure)):
        generate(PromptEngine(failure), json=True)
    assert "{" not in generate.stdout
    assert list(tmp_path.iterdir()) == []


def test_an_old_video_stays_when_the_new_one_cannot_be_written(generate, tmp_path):
    (tmp_path / "out.mp4").write_bytes(b"old")
    with pytest.raises(ValueError, match="frames are"):
        generate(PromptEngine(frames=np.zeros((0, 64, 64, 3), np.uint8)), json=True)
    assert (tmp_path / "out.mp4").read_bytes() == b"old"
    assert "{" not in generate.stdout


@pytest.mark.parametrize(
    ("values", "backend", "effect"),
    [
        ({}, None, False),
        ({}, "TORCH_SDPA", False),
        ({"diffusion_attention_config.per_role": {"cross": "TORCH_SDPA"}}, None, False),
        ({}, "FLASH_ATTN", True),
        ({"diffusion_attention_config.default": "FLASH_ATTN"}, None, True),
        ({"diffusion_attention_config.per_role": {"cross": "FLASH_ATTN"}}, None, True),
        ({"ring_degree": 2, "model_config.ring_attention": True}, None, True),
    ],
)
def test_the_switch_of_the_interpreter_is_never_ignored_in_silence(values, backend, effect, monkeypatch):
    stage = StageConfig(values, "a stage file")
    monkeypatch.setenv("VLLM_NEURON_CPU_MODE", "1")
    monkeypatch.delenv("DIFFUSION_ATTENTION_BACKEND", raising=False)
    if backend is not None:
        monkeypatch.setenv("DIFFUSION_ATTENTION_BACKEND", backend)
    monkeypatch.delenv("NKI_SIMULATOR", raising=False)
    assert run.interpreter_note(stage) is None
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    assert ("run in the interpreter" in run.interpreter_note(stage)) is effect
    assert ("has no effect" in run.interpreter_note(stage)) is not effect
