import contextlib
import os
import pty
import re
from collections.abc import Callable

import pytest

from omni_neuron.wan22.pipelines import progress
from omni_neuron.wan22.pipelines.progress import DenoiseProgress

SHOW_CURSOR = "\x1b[?25h"


def _shown_in_a_terminal(run: Callable[[], None]) -> str:
    """What a terminal gets while it stands in for standard error."""
    reader, writer = pty.openpty()
    saved = os.dup(progress.STDERR)
    os.dup2(writer, progress.STDERR)
    try:
        run()
    finally:
        os.dup2(saved, progress.STDERR)
        os.close(saved)
    os.close(writer)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal says that nobody writes any more
        while chunk := os.read(reader, 65536):
            shown += chunk
    os.close(reader)
    return shown.decode()


def _three_steps(enabled: bool = True) -> None:
    with DenoiseProgress(3, enabled) as bar:
        for _ in range(3):
            bar.update()


def test_outside_a_terminal_every_step_is_a_plain_line(capfd: pytest.CaptureFixture[str]) -> None:
    _three_steps()
    assert capfd.readouterr().err == "denoise 1/3\ndenoise 2/3\ndenoise 3/3\n"


def test_a_rank_that_shows_nothing_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    _three_steps(enabled=False)
    assert capfd.readouterr().err == ""


def test_in_a_terminal_a_bar_counts_the_steps() -> None:
    shown = _shown_in_a_terminal(_three_steps)
    assert "denoise" in shown
    assert re.search(r"3/3", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))


def test_a_failed_step_ends_the_bar() -> None:
    def fail() -> None:
        with DenoiseProgress(3) as bar:
            bar.update()
            raise ValueError("step")

    def run() -> None:
        with pytest.raises(ValueError, match="step"):
            fail()

    assert SHOW_CURSOR in _shown_in_a_terminal(run)
