"""The command in every layout: what it prints, what it writes, and that the engine made it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import av
import pytest
import torch
from layout_table import EngineRow
from PIL import Image
from report_line import report_of
from safetensors.torch import load_file
from video_cases import BASE, Case

pytestmark = pytest.mark.layouts

TIMEOUT_S = 900
COMMAND = Path(sys.executable).with_name("omni-neuron")


def arguments(case: Case, degrees: dict[str, int]) -> list[str]:
    """A case in the words of the command line."""
    flags = {
        "--negative-prompt": case.negative_prompt,
        "--height": case.height,
        "--width": case.width,
        "--num-frames": case.num_frames,
        "--steps": case.steps,
        "--guidance-scale": case.guidance_scale,
        "--guidance-scale-2": case.guidance_scale_2,
        "--flow-shift": case.flow_shift,
        "--seed": case.seed,
        **{f"--{name}": degree for name, degree in degrees.items()},
    }
    return [case.prompt, *(str(word) for flag in flags.items() for word in flag)]


def generate(folder: Path, degrees: dict[str, int], stage_file: Path | None) -> str:
    """Standard output of the command, which writes into `folder`."""
    files = ["--output", "out.mp4", "--save-latents", "latents.safetensors", "--json"]
    files += [] if stage_file is None else ["--stage-config", str(stage_file)]
    with (folder / "stderr.txt").open("w") as stderr:
        finished = subprocess.run(
            [str(COMMAND), "generate", *arguments(BASE, degrees), "--dtype", "float32", *files],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert finished.returncode == 0, (folder / "stderr.txt").read_text()[-4000:]
    return finished.stdout


def check_media(video: Path, contact_sheet: Path) -> None:
    with av.open(video) as container:
        frames = list(container.decode(video=0))
    assert len(frames) == BASE.num_frames
    assert (frames[0].height, frames[0].width) == (BASE.height, BASE.width)
    with Image.open(contact_sheet) as sheet:
        assert sheet.format == "PNG"
        sheet.load()


def test_the_command_reports_and_saves_what_the_engine_makes(
    layout, degrees, stage_file, engines, rows, tmp_path
):
    start = time.perf_counter()
    output = generate(tmp_path, degrees, stage_file)
    wall_s = time.perf_counter() - start
    report = report_of(output)
    assert report["layout"] == {name: degrees[name] for name in ("tp", "cp", "cfg")}
    assert (report["dtype"], report["seed"]) == ("float32", BASE.seed)
    startup_s, peak_mib = report["timings_s"]["startup"], max(report["peak_rss_anon_mib"])
    rows.append(EngineRow(layout, report["dtype"], "command", wall_s, startup_s, peak_mib))

    saved = load_file(tmp_path / report["latents"])
    assert saved.keys() == {"latents"}
    latents = saved["latents"]
    assert latents.dtype == torch.float32
    digest = sha256(latents.contiguous().numpy().tobytes()).hexdigest()
    assert set(report["latents_sha256"]) == {digest}
    assert torch.equal(latents, engines(layout, "float32")[0].latents[BASE.name])
    check_media(tmp_path / report["video"], tmp_path / report["contact_sheet"])
