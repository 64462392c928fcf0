import pytest

from omni_neuron.cli.failure import report
from omni_neuron.runtime.errors import InputError, SetupError


@pytest.mark.parametrize(
    ("error", "status", "last"),
    [
        (InputError("The size 3 is odd."), 2, "prog: error: The size 3 is odd."),
        (InputError(), 2, "prog: error: InputError"),
        (ValueError("bad"), 1, "prog: error: ValueError: bad"),
        (ValueError(), 1, "prog: error: ValueError"),
        (SetupError("No device."), 1, "prog: error: No device."),
        (KeyError("x"), 1, "prog: error: KeyError: 'x'"),
        (OSError(13, "Permission denied"), 1, "prog: error: PermissionError: [Errno 13] Permission denied"),
        (MemoryError(), 1, "prog: error: MemoryError"),
        (KeyboardInterrupt(), 130, "prog: interrupted"),
    ],
)
def test_status_and_sentence(
    error: BaseException, status: int, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(error, "prog", debug=False) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [last]


def test_details_come_above_the_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    report(InputError("Two tensors are missing.\na.weight\nb.weight"), "prog", debug=False)
    assert capsys.readouterr().err.splitlines() == [
        "a.weight",
        "b.weight",
        "prog: error: Two tensors are missing.",
    ]


def test_debug_adds_the_traceback_and_keeps_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise KeyError("x")
    except KeyError as error:
        report(error, "prog", debug=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-1] == "prog: error: KeyError: 'x'"
