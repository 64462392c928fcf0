import argparse
import json
import subprocess
import sys

import pytest

from omni_neuron.distributed.commands import plan
from omni_neuron.runtime.errors import InputError


def run(*given: str) -> int:
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    return plan.run(parser.parse_args(given))


def test_json_of_one_layout_is_exactly_that_one(capsys):
    assert run("--model", "wan2.2-t2v-a14b", "--layout", "tp=4,cp=8,cfg=2", "--json") == 0
    output = json.loads(capsys.readouterr().out)
    (candidate,) = output["candidates"]
    assert (candidate["tp"], candidate["cp"], candidate["cfg"]) == (4, 8, 2)
    assert (candidate["fits"], candidate["hbm_gb"]) == (False, pytest.approx(24.4, abs=0.5))
    assert len(output["calibration"]) >= 15


def test_json_of_all_layouts_has_the_best_first(capsys):
    assert run("--model", "wan2.1-t2v-1.3b", "--json", "--top", "4") == 0
    candidates = json.loads(capsys.readouterr().out)["candidates"]
    assert len(candidates) == 4
    assert candidates[0]["fits"]
    assert candidates[0]["routable"]


def test_sizes_reach_the_plan(capsys):
    arguments = ["--model", "wan2.2-t2v-a14b", "--layout", "tp=8,cp=4,cfg=2", "--json"]
    seconds = []
    for size in (["--height", "480", "--width", "832"], ["--num-frames", "33"], ["--steps", "20"], []):
        run(*arguments, *size)
        seconds.append(json.loads(capsys.readouterr().out)["candidates"][0]["predicted_s"])
    assert all(shorter < seconds[-1] for shorter in seconds[:-1])
    assert len(set(seconds)) == 4


def test_text_and_drawing(capsys, tmp_path):
    file = tmp_path / "groups.svg"
    assert run("--model", "wan2.2-ti2v-5b", "--layout", "tp=4,cp=8,cfg=2", "--svg", str(file)) == 0
    text = capsys.readouterr().out
    assert "tensor parallel, 16 groups of 4" in text
    assert file.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--model", "nothing"], "model='nothing'"),
        (["--model", "wan2.2-t2v-a14b", "--instance", "trn9"], "instance='trn9'"),
        (["--model", "wan2.2-t2v-a14b", "--top", "0"], "top=0 must be at least 1"),
        (["--model", "wan2.2-t2v-a14b", "--height", "0"], "height=0 must be at least 1"),
        (["--model", "wan2.2-t2v-a14b", "--layout", "tp=8,cp=16"], "128 ranks exceed the 64 cores"),
        (
            ["--model", "wan2.2-t2v-a14b", "--layout", "tp=8", "--svg", "/nowhere/x.svg"],
            "svg='/nowhere/x.svg'",
        ),
    ],
)
def test_bad_input_is_one_sentence(given, message):
    with pytest.raises(InputError, match=message) as caught:
        run(*given)
    assert "\n" not in str(caught.value)


def test_help_needs_neither_torch_nor_the_planner():
    script = (
        "import sys, argparse; from omni_neuron.distributed.commands import plan; "
        "plan.add_arguments(argparse.ArgumentParser()); print('torch' in sys.modules, len(sys.modules))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert answer.stdout.startswith("False")
