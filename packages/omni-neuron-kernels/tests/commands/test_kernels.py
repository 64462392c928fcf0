import argparse
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from omni_neuron.kernels import catalogue, interpreter, proof
from omni_neuron.kernels.commands import kernels
from omni_neuron.runtime.adapter import cpu
from omni_neuron.runtime.errors import InputError, SetupError

SPEC = catalogue.KERNELS["rms_norm"]
SMALL = SPEC.cases()[-2:]  # one bf16, one fp32


def run(*given: str) -> int:
    parser = argparse.ArgumentParser()
    kernels.add_arguments(parser)
    return kernels.run(parser.parse_args(given))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """RMSNorm alone, on few tokens."""
    alone = {"rms_norm": replace(SPEC, cases=lambda: SMALL, roofline=lambda: SMALL[:1])}
    monkeypatch.setattr(catalogue, "KERNELS", alone)


def test_ls_shows_what_the_catalogue_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ls") == 0
    text = " ".join(capsys.readouterr().out.split())
    for said in ("rms_norm", SPEC.summary, *SPEC.roundings, SPEC.limits[0]):
        assert said in text


@pytest.mark.parametrize("name", ["rms_norm", "all"])
def test_proofs_that_hold_give_status_0(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("test", name) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = [line.split() for line in lines if line.endswith("holds")]
    assert len(shown) == 2 * len(SMALL)  # on one core and on two
    assert all(float(line[-5]) <= float(line[-4]) and float(line[-3]) <= float(line[-2]) for line in shown)


def test_a_kernel_unlike_its_twin_gives_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def off(ranks: object) -> list[tuple[object, ...]]:
        return [tuple(1.01 * value for value in results) for results in SPEC.twin(ranks)]

    alone = {"rms_norm": replace(catalogue.KERNELS["rms_norm"], twin=off)}
    monkeypatch.setattr(catalogue, "KERNELS", alone)
    assert run("test", "rms_norm", "--lnc", "1") == 1
    out = capsys.readouterr().out
    assert out.count("FAILS") == len(SMALL)
    assert out.splitlines()[-1] == f"{len(SMALL)} of them fail."


def test_a_roofline_says_that_it_is_a_prediction(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("roofline", "rms_norm", "--lnc", "2", "--trace", str(tmp_path / "trace.json")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "nothing here was measured" in lines[0]
    assert lines[-1].startswith(SMALL[0].title)
    assert json.loads((tmp_path / "trace.json").read_text())


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_a_proof_runs_on_the_machine_that_is_asked_for(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    interpret, asked = proof.interpret, []

    def record(*given: object) -> object:
        asked.append(given[-1])
        return interpret(*given)

    monkeypatch.setattr(proof, "interpret", record)
    run("test", "rms_norm", "--lnc", "1", "--target", target)
    assert asked == [target] * len(SMALL)


def test_a_prediction_is_for_the_machine_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    last = {}
    for target in ("trn2", "trn3"):
        run("roofline", "rms_norm", "--lnc", "1", "--target", target)
        lines = capsys.readouterr().out.splitlines()
        assert lines[1].startswith(target)
        last[target] = lines[-1]
    assert "368 GB/s" in last["trn2"]  # 16 engines of 23 B/ns
    assert "528 GB/s" in last["trn3"]  # of 33 B/ns


def test_every_run_has_its_own_trace(tmp_path: Path) -> None:
    run("roofline", "rms_norm", "--trace", str(tmp_path / "trace.json"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["trace-1.json", "trace-2.json"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("test", "rmsnorm"), "There is no kernel 'rmsnorm': use one of rms_norm, or all."),
        (("roofline", "rmsnorm"), "There is no kernel 'rmsnorm': use one of rms_norm, or all."),
        (
            ("roofline", "rms_norm", "--lnc", "1", "--trace", "/nowhere/x.json"),
            "trace='/nowhere/x.json' must be a file that can be written: No such file or directory.",
        ),
    ],
)
def test_bad_input_is_one_sentence(given: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError) as caught:
        run(*given)
    assert str(caught.value) == message


@pytest.mark.parametrize("lncs", [("--lnc", "1"), ()])
@pytest.mark.parametrize("trace", ["", "/", ".", "/nowhere/x.json", "x" * 300])
def test_a_trace_that_cannot_be_written_is_refused_before_anything_runs(
    trace: str, lncs: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r"^trace='.*' must be a file that can be written: \w.*\.$"):
        run("roofline", "rms_norm", "--trace", trace, *lncs)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("action", ["test", "roofline"])
def test_without_an_interpreter_the_remedy_is_all_that_is_said(
    action: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cpu, "entry_points", lambda group: [])
    with pytest.raises(SetupError, match="pip install omni-neuron-sim"):
        run(action, "rms_norm")
    assert capsys.readouterr().out == ""


def test_on_a_device_the_interpreter_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler's NKI can simulate one rank and knows no costs."""
    monkeypatch.setattr(interpreter, "get_adapter", lambda: SimpleNamespace(nki=SimpleNamespace))
    with pytest.raises(SetupError, match="set VLLM_NEURON_CPU_MODE=1"):
        run("test", "rms_norm")


def test_help_does_not_import_torch() -> None:
    script = (
        "import sys, argparse; from omni_neuron.kernels.commands import kernels; "
        "kernels.add_arguments(argparse.ArgumentParser()); print('torch' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert answer.stdout == "False\n"
