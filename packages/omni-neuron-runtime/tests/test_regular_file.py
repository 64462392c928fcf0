import os
from pathlib import Path

import pytest

from omni_neuron.runtime.regular_file import regular_text


def test_text_is_read_as_utf8(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes("\u00fc".encode())
    assert regular_text(file) == "\u00fc"
    link = tmp_path / "b.json"
    link.symlink_to(file)
    assert regular_text(link) == "\u00fc"


def test_what_never_ends_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match="not a regular file"):
            regular_text(path)


def test_a_file_that_is_missing_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        regular_text(tmp_path / "none")
