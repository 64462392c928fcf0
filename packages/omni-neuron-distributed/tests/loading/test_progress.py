"""Plain lines of progress: some, and the last one of whatever took long enough to have any."""

import io
import re

import pytest

from omni_neuron.distributed.loading import progress
from omni_neuron.distributed.loading.progress import PlainProgress


@pytest.fixture
def clock(monkeypatch):
    times = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: times[0])
    return times


def test_lines_come_at_intervals_and_at_the_end(clock):
    stream = io.StringIO()
    report = PlainProgress("transformer", stream, every_s=5)
    for seconds in range(1, 13):
        clock[0] = float(seconds)
        report(seconds * 100_000_000, 1_200_000_000)
    lines = stream.getvalue().splitlines()
    assert [re.fullmatch(r"transformer: ([\d.]+) of 1\.20 GB \(.*", line)[1] for line in lines] == [
        "0.50",
        "1.00",
        "1.20",
    ]
    assert lines[-1] == "transformer: 1.20 of 1.20 GB (100 %), 0.10 GB/s"


def test_what_is_over_before_the_first_line_is_silent(clock):
    stream = io.StringIO()
    report = PlainProgress("vae", stream, every_s=5)
    clock[0] = 4.0
    report(1, 2)
    report(2, 2)
    assert stream.getvalue() == ""


def test_every_call_is_a_line_without_an_interval_and_nothing_to_load_is_whole(capsys):
    report = PlainProgress("vae", every_s=0)
    report(500_000_000, 1_000_000_000)
    report(0, 0)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("vae: 0.50 of 1.00 GB (50 %)")
    assert last.startswith("vae: 0.00 of 0.00 GB (100 %)")
