"""Bad input to the command itself: status, streams, speed; and what only a worker can find."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import engine_faults
import pytest
from command_process import run, running
from faulty_checkpoint import NAMES, with_faulty_tensors, with_truncated_file

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((" ",), "prompt is ' '"),
        (("a ball", "--height", "63"), "height is 63"),
        (("a ball", "--steps", "0"), "is 0"),
        (("a ball", "--tp", "3"), "num_attention_heads=4"),
        (("a ball", "--boundary-ratio", "2"), "is 2"),
        (("a ball", "--output", "/proc/out.mp4"), "/proc/out.mp4 cannot be written"),
        (("a ball", "--steps", "many"), "--steps"),
        (("a ball", "--stpes", "3"), "the nearest is --steps"),
        (("a", "red", "ball"), "put the prompt in quotes"),
        (("a ball", "--flow-shift", "1e-320"), "must lie in 0.01..100"),
        (("a ball", "--output", "~nosuchuser/x.mp4"), "no home"),
    ],
)
def test_the_sentence_is_the_last_line_and_no_engine_starts(
    tmp_path: Path, words: tuple[str, ...], part: str
) -> None:
    finished = run("generate", *words, "--json", cwd=tmp_path)
    assert finished.status == 2
    assert finished.stdout == ""
    assert finished.last_line.startswith("omni-neuron generate: error: ")
    assert part in finished.last_line
    assert "starting the engine" not in finished.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_faulty_tensor_is_named_before_an_engine_starts(tmp_path: Path) -> None:
    folder = with_faulty_tensors(tmp_path / "checkpoint")
    finished = run("generate", "a ball", "--model", str(folder), "--json", cwd=tmp_path)
    assert finished.status == 2
    assert finished.stdout == ""
    assert "starting the engine" not in finished.stderr
    for name in (name for names in NAMES.values() for name in names):
        assert name in finished.last_line


@pytest.mark.parametrize("tp", ["1", "2"])
@pytest.mark.parametrize("fault", ["tensors", "truncated"])
def test_what_only_a_worker_finds_comes_back_as_its_sentence(tmp_path: Path, tp: str, fault: str) -> None:
    """For those who start an engine without the command."""
    build = with_faulty_tensors if fault == "tensors" else with_truncated_file
    folder = build(tmp_path / "checkpoint")
    program = [sys.executable, engine_faults.__file__]
    with running("start_with", str(folder), tp, cwd=tmp_path, program=program) as process:
        finished = process.finish()
    assert finished.status == 0, finished.stderr[-4000:]
    outcome = json.loads(finished.stdout)
    assert outcome["error"] == "InputError"
    assert "\n" not in outcome["message"]
    words = ("truncated", "transformer/diffusion_pytorch_model.safetensors")
    for word in ("proj_out.bias", "surplus") if fault == "tensors" else words:
        assert word in outcome["message"]
