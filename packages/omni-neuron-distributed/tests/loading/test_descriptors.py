"""Files are opened once and closed at the end."""

import os

import pytest

from omni_neuron.distributed.errors import CheckpointError
from omni_neuron.distributed.loading.descriptors import Descriptors


def test_a_file_is_opened_once_and_closed_at_the_end(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    with Descriptors() as files:
        descriptor = files[tmp_path / "a"]
        assert files[tmp_path / "a"] == descriptor
        assert os.read(descriptor, 3) == b"abc"
        with pytest.raises(CheckpointError, match=rf"{tmp_path}/gone cannot be opened \(No such file"):
            files[tmp_path / "gone"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.timeout(10)
def test_a_pipe_in_a_file_s_place_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with Descriptors() as files, pytest.raises(OSError, match="Illegal seek"):
        os.pread(files[tmp_path / "pipe"], 1, 0)
