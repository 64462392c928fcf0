"""What the command promises about its files and streams."""

from __future__ import annotations

import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import av
import pytest
import yaml
from command_process import run, running
from report_line import report_of
from safetensors.torch import load_file

pytestmark = pytest.mark.slow

SMALL = ("--steps", "2", "--num-frames", "5")
EXAMPLE = Path(__file__).parents[4] / "examples" / "stages" / "cpu-tp2-cp2-cfg2.yaml"
BUILD = """
import sys
from pathlib import Path
from omni_neuron.wan22.checkpoint.tiny import tiny_checkpoint
print(tiny_checkpoint(root=Path(sys.argv[1])))
"""


def frames_of(path: Path) -> int:
    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


@pytest.mark.parametrize("tp", [1, 2])
def test_one_line_of_json_and_the_files_that_it_names(tmp_path: Path, tp: int) -> None:
    (tmp_path / "sub").mkdir()
    old = tmp_path / "sub" / "a.mp4"
    old.write_bytes(b"old")
    inode = old.stat().st_ino
    words = ("--output", "sub/a.mp4", "--save-latents", "l.safetensors", "--seed", "3", "--tp", str(tp))
    finished = run("generate", "a ball", *SMALL, *words, "--json", cwd=tmp_path)
    assert finished.status == 0, finished.stderr
    report = report_of(finished.stdout)
    assert report["video"] == "sub/a.mp4"
    assert report["contact_sheet"] == "sub/a.png"
    assert report["latents"] == "l.safetensors"
    assert report["layout"] == {"tp": tp, "cp": 1, "cfg": 1}
    assert (report["dtype"], report["seed"]) == ("float32", 3)
    latents = load_file(tmp_path / "l.safetensors")["latents"]
    digest = sha256(latents.contiguous().numpy().tobytes()).hexdigest()
    assert report["latents_sha256"] == [digest] * tp
    assert frames_of(old) == 5
    assert old.stat().st_ino != inode  # replaced, not written over
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
    assert left == ["l.safetensors", "sub", "sub/a.mp4", "sub/a.png"]
    lines = [line for line in finished.stderr.splitlines() if line.startswith("denoise")]
    assert lines == ["denoise 1/2", "denoise 2/2"]


def test_a_bar_in_a_terminal(tmp_path: Path) -> None:
    finished = run("generate", "a ball", *SMALL, "--json", cwd=tmp_path, terminal=True)
    assert finished.status == 0, finished.stderr
    assert report_of(finished.stdout)["latents"] is None
    assert "━" in finished.stderr
    assert re.search(r"denoise.*2/2", finished.stderr)
    assert not re.search(r"^denoise 1/2\r?$", finished.stderr, re.MULTILINE)


@pytest.mark.parametrize("form", ["stages", "stage_args"])
def test_a_stage_file_with_flags(tmp_path: Path, form: str) -> None:
    sampling = {"height": 48, "width": 80, "num_frames": 5, "num_inference_steps": 3, "seed": 9}
    common = {"stage_id": 0, "default_sampling_params": sampling}
    engine = {"parallel_config": {"cfg_parallel_size": 2}, "flow_shift": 12.0}
    if form == "stages":
        document: dict[str, Any] = {"dtype": "float32", "stages": [{**common, **engine}]}
    else:
        document = {"stage_args": [{**common, "engine_args": {**engine, "dtype": "float32"}}]}
    (tmp_path / "stage.yaml").write_text(yaml.safe_dump(document))
    words = ("--stage-config", "stage.yaml", "--steps", "2", "--save-latents", "l.safetensors", "--json")
    finished = run("generate", "a ball", *words, cwd=tmp_path)
    assert finished.status == 0, finished.stderr
    assert "num_inference_steps: 3 (file) -> 2 (--steps)" in finished.stderr
    report = report_of(finished.stdout)
    assert report["layout"] == {"tp": 1, "cp": 1, "cfg": 2}
    assert report["seed"] == 9
    assert list(load_file(tmp_path / "l.safetensors")["latents"].shape) == [16, 2, 6, 10]


def test_the_example_with_eight_workers(tmp_path: Path) -> None:
    words = ("--stage-config", str(EXAMPLE), "--num-frames", "5", "--steps", "2", "--json")
    finished = run("generate", "a ball", *words, cwd=tmp_path)
    assert finished.status == 0, finished.stderr
    assert "num_frames: 17 (file) -> 5 (--num-frames)" in finished.stderr
    report = report_of(finished.stdout)
    assert report["layout"] == {"tp": 2, "cp": 2, "cfg": 2}
    assert len(set(report["latents_sha256"])) == 1


def test_two_at_the_same_time(tmp_path: Path) -> None:
    words = ("generate", "a ball", *SMALL, "--tp", "2", "--json")
    with (
        running(*words, "--output", "a.mp4", cwd=tmp_path) as first,
        running(*words, "--output", "b.mp4", cwd=tmp_path) as second,
    ):
        finished = [command.finish() for command in (first, second)]
    for command in finished:
        assert command.status == 0, command.stderr
    digests = [report_of(command.stdout)["latents_sha256"] for command in finished]
    assert digests[0] == digests[1]
    assert frames_of(tmp_path / "a.mp4") == frames_of(tmp_path / "b.mp4") == 5


def test_two_processes_build_one_checkpoint(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BUILD, str(tmp_path)]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    folders = {builder.communicate(timeout=120)[0].strip() for builder in builders}
    assert [builder.returncode for builder in builders] == [0, 0]
    (folder,) = folders
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir() if path.is_dir()) == [
        Path(folder).name
    ]
