"""Plain lines of progress: some, and the last one always."""

import io
import re

from omni_neuron.distributed.loading.progress import PlainProgress


def test_lines_come_at_intervals_and_at_the_end():
    stream = io.StringIO()
    report = PlainProgress("transformer", stream, every_s=3600)
    for done in range(0, 2_000_000_000, 100_000_000):
        report(done, 2_000_000_000)
    assert stream.getvalue() == ""
    report(2_000_000_000, 2_000_000_000)
    (line,) = stream.getvalue().splitlines()
    assert re.fullmatch(r"transformer: 2\.00 of 2\.00 GB \(100 %\), [\d.]+ GB/s", line)


def test_every_call_is_a_line_without_an_interval_and_nothing_to_load_is_whole(capsys):
    report = PlainProgress("vae", every_s=0)
    report(500_000_000, 1_000_000_000)
    report(0, 0)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("vae: 0.50 of 1.00 GB (50 %)")
    assert last.startswith("vae: 0.00 of 0.00 GB (100 %)")
