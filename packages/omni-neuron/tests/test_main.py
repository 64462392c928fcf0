import subprocess
import sys
from importlib.metadata import version
from typing import Any

import pytest

from omni_neuron.cli.main import called_verb, main

ODD = "from omni_neuron.runtime.errors import InputError\nODD = InputError('The size 3 is odd.')"
HEAVY = "torch vllm vllm_omni diffusers transformers numpy"


@pytest.mark.parametrize(
    ("arguments", "verb"),
    [
        ([], None),
        (["doctor"], "doctor"),
        (["--debug", "doctor", "--json"], "doctor"),
        (["doctor", "--help"], "doctor"),
        (["--help", "doctor"], None),
        (["--version"], None),
    ],
)
def test_the_verb_is_the_first_word(arguments: list[str], verb: str | None) -> None:
    assert called_verb(arguments) == verb


def test_a_verb_gets_its_arguments_and_gives_the_status(
    add_verb: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    add_verb("zoom", "def run(args):\n    print(args.number)\n    return 7")
    assert main(["zoom", "--number", "5"]) == 7
    assert capsys.readouterr().out == "5\n"


def test_only_the_called_verb_is_imported(add_verb: Any) -> None:
    add_verb("zoom", "def run(args):\n    return 0")
    add_verb("broken", "raise RuntimeError('imported')")
    assert main(["zoom"]) == 0


@pytest.mark.parametrize(
    ("body", "status", "last"),
    [
        ("raise ODD", 2, "omni-neuron zoom: error: The size 3 is odd."),
        ("raise RuntimeError('It broke.')", 1, "omni-neuron zoom: error: RuntimeError: It broke."),
        ("raise KeyboardInterrupt", 130, "omni-neuron zoom: interrupted"),
    ],
)
def test_errors_end_in_one_sentence(
    add_verb: Any, body: str, status: int, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add_verb("zoom", f"{ODD}\ndef run(args):\n    {body}")
    assert main(["zoom"]) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [last]


@pytest.mark.parametrize("arguments", [["--debug", "zoom"], ["zoom", "--debug"]])
def test_debug_before_or_after_the_verb(
    add_verb: Any, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    add_verb("zoom", f"{ODD}\ndef run(args):\n    raise ODD")
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("Traceback")


def test_debug_behind_the_action_of_a_verb(add_verb: Any, capsys: pytest.CaptureFixture[str]) -> None:
    actions = "def add_arguments(p):\n    p.add_subparsers(dest='action').add_parser('all')\n"
    add_verb("zoom", f"{actions}def run(args):\n    print(args.debug, args.action)\n    return 0")
    assert main(["zoom", "all", "--debug"]) == 0
    assert capsys.readouterr().out == "True all\n"


@pytest.mark.parametrize(
    ("arguments", "debug"), [(["zoom"], False), (["--debug", "zoom"], True), (["zoom", "--debug"], True)]
)
def test_a_verb_is_told_about_debug(
    add_verb: Any, arguments: list[str], debug: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    add_verb("zoom", "def run(args):\n    print(args.debug)\n    return 0")
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"{debug}\n"


def test_debug_by_variable(
    add_verb: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_verb("zoom", f"{ODD}\ndef run(args):\n    raise ODD")
    monkeypatch.setenv("OMNI_NEURON_DEBUG", "1")
    assert main(["zoom"]) == 2
    assert capsys.readouterr().err.startswith("Traceback")
    monkeypatch.setenv("OMNI_NEURON_DEBUG", "yes")
    assert main(["zoom"]) == 2
    assert "OMNI_NEURON_DEBUG='yes'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["zoom", "--nubmer", "3"], "There is no option --nubmer; the nearest is --number."),
        (["zoom", "--nubmer=3", "x"], "There is no option --nubmer; the nearest is --number."),
        (["--debgu", "zoom"], "There is no option --debgu; the nearest is --debug."),
        (["zoom", "x"], "There is no place for 'x'; leave it out."),
    ],
)
def test_what_the_verb_cannot_place_is_its_own_error(
    add_verb: Any, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add_verb("zoom", "def run(args):\n    return 0")
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"omni-neuron zoom: error: {sentence}\n"


@pytest.mark.parametrize("arguments", [[], ["--bogus"], ["doctor", "--help=yes"]])
def test_wrong_usage_is_bad_input(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "error: " in captured.err.splitlines()[-1]


def test_an_unknown_verb_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctr"]) == 2
    assert capsys.readouterr().err == (
        "omni-neuron doctr: error: There is no verb 'doctr'; the nearest is doctor.\n"
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"omni-neuron {version('omni-neuron')}\n"


def test_help_lists_the_verbs_and_imports_nothing_heavy() -> None:
    script = (
        "import sys\nfrom omni_neuron.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print(sorted(set({HEAVY.split()}) & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert "doctor" in done.stdout
    assert "Tell what is installed" in done.stdout
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_reader_that_leaves_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "omni_neuron.cli", "doctor"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        heard = process.stderr.read()
        assert process.wait(60) == 141
    assert "error" not in heard


def test_a_closed_standard_output_is_no_error() -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m omni_neuron.cli doctor >&-"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Error" not in done.stderr
    assert done.returncode in (0, 1)
