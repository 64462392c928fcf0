"""Files that appear whole or not at all."""

import errno
import os

import pytest

from omni_neuron.runtime.errors import InputError
from omni_neuron.wan22.media.output import check_writable, whole_file


def test_a_file_appears_at_the_end(tmp_path):
    path = tmp_path / "out.bin"
    with whole_file(path) as draft:
        draft.write_bytes(b"new")
        assert not path.exists()
        assert draft.suffix == ".bin"
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.bin"]


def test_the_mode_is_that_of_an_ordinary_file(tmp_path):
    (tmp_path / "ordinary").write_text("")
    with whole_file(tmp_path / "out") as draft:
        draft.write_text("")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_an_error_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")

    def write_half():
        with whole_file(path) as draft:
            draft.write_bytes(b"half")
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        write_half()
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.bin"]


def test_a_full_disk_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="no space left"), whole_file(tmp_path / "out"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_longest_name_that_a_folder_takes_can_be_written(tmp_path):
    path = tmp_path / ("a" * 251 + ".mp4")
    with whole_file(check_writable(path)) as draft:
        draft.write_bytes(b"new")
    assert path.read_bytes() == b"new"


def test_a_longer_name_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="cannot be written: file name too long"):
        check_writable(tmp_path / ("a" * 252 + ".mp4"))


def test_a_bug_is_not_called_a_permission(tmp_path):
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "out"):
        (tmp_path / "nothing").read_bytes()


@pytest.mark.parametrize(("name", "reason"), [("missing/out.mp4", "does not exist"), ("", "is a folder")])
def test_a_place_that_cannot_be(tmp_path, name, reason):
    with pytest.raises(InputError, match=reason) as error:
        check_writable(tmp_path / name)
    assert str(error.value).count("\n") == 0


def test_a_refused_folder_is_named_before_the_work(tmp_path, monkeypatch):
    """Root may write anywhere, so the refusal of the operating system is put in by hand."""

    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(InputError, match="permission denied") as error:
        check_writable(tmp_path / "out.mp4")
    assert str(tmp_path / "out.mp4") in str(error.value)


def test_a_check_leaves_nothing_behind(tmp_path):
    assert check_writable(tmp_path / "out.mp4") == tmp_path / "out.mp4"
    assert list(tmp_path.iterdir()) == []
